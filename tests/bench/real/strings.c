#include "native.h"

void substring(const char *text, int n, const char *needle, int length, int *count, int *first) {
    for (int i = 0; i <= n - length; i++) {
        int k = 0;
        while (k < length && text[i + k] == needle[k]) k++;
        if (k == length) {
            ++*count;
            if (i < *first) *first = i;
        }
    }
}

void to_upper(const char *restrict in, char *restrict out, int n) {
    for (int i = 0; i < n; i++) out[i] = in[i] >= 'a' && in[i] <= 'z' ? in[i] - 32 : in[i];
}

void count_words(const char *text, const int *start, int *words, int lines) {
    for (int i = 0; i < lines; i++) {
        int count = 0, inside = 0;
        for (int k = start[i]; k < start[i + 1]; k++) {
            int space = text[k] == ' ' || text[k] == '\t';
            if (!space && !inside) count++;
            inside = !space;
        }
        words[i] = count;
    }
}

void crc32(const u8 *in, u32 *out, int n, int length, const u32 *table) {
    for (int i = 0; i < n; i++) {
        u32 crc = ~0u;
        for (int k = 0; k < length; k++) crc = table[(crc ^ in[i * length + k]) & 255] ^ crc >> 8;
        out[i] = ~crc;
    }
}

void base64(const u8 *restrict in, u8 *restrict out, int groups) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < groups; i++) {
        u32 v = in[3 * i] << 16 | in[3 * i + 1] << 8 | in[3 * i + 2];
        for (int k = 0; k < 4; k++) out[4 * i + k] = digits[v >> (18 - 6 * k) & 63];
    }
}

static inline u32 turned(u32 x, int n) { return x >> n | x << (32 - n); }

void sha256_twice(const u32 *messages, u32 *out, int n, const u32 *constants) {
    static const u32 start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
                                 0x5be0cd19};
    for (int i = 0; i < n; i++) {
        u32 w[16], *s = out + i * 8;
        memcpy(w, messages + i * 16, sizeof w);
        for (int pass = 0; pass < 2; pass++) {
            u32 a = start[0], b = start[1], c = start[2], d = start[3], e = start[4], f = start[5], g = start[6],
                h = start[7];
            for (int r = 0; r < 64; r++) {
                if (r >= 16) {
                    u32 p = w[(r + 1) % 16], q = w[(r + 14) % 16];
                    u32 s0 = turned(p, 7) ^ turned(p, 18) ^ p >> 3, s1 = turned(q, 17) ^ turned(q, 19) ^ q >> 10;
                    w[r % 16] += s0 + w[(r + 9) % 16] + s1;
                }
                u32 t1 = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + constants[r]
                    + w[r % 16];
                u32 t2 = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
                h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
            }
            s[0] = start[0] + a, s[1] = start[1] + b, s[2] = start[2] + c, s[3] = start[3] + d;
            s[4] = start[4] + e, s[5] = start[5] + f, s[6] = start[6] + g, s[7] = start[7] + h;
            memset(w, 0, sizeof w);
            memcpy(w, s, 8 * sizeof(u32));
            w[8] = 0x80000000;
            w[15] = 256;
        }
    }
}
