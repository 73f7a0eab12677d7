#include "native.h"

static inline u32 turned(u32 x, int by) { return x << by | x >> (32 - by); }

#define QUARTER(a, b, c, d)                                             \
    x[a] += x[b], x[d] = turned(x[d] ^ x[a], 16), x[c] += x[d], x[b] = turned(x[b] ^ x[c], 12), \
    x[a] += x[b], x[d] = turned(x[d] ^ x[a], 8), x[c] += x[d], x[b] = turned(x[b] ^ x[c], 7);

void chacha20(const u32 *key, const u32 *in, u32 *out, int n) {
    for (int i = 0; i < n; i++) {
        u32 s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, x[16];
        memcpy(s + 4, key, 32);
        s[12] = i, s[13] = key[8], s[14] = key[9], s[15] = key[10];
        memcpy(x, s, sizeof s);
        for (int r = 0; r < 10; r++) {
            QUARTER(0, 4, 8, 12) QUARTER(1, 5, 9, 13) QUARTER(2, 6, 10, 14) QUARTER(3, 7, 11, 15)
            QUARTER(0, 5, 10, 15) QUARTER(1, 6, 11, 12) QUARTER(2, 7, 8, 13) QUARTER(3, 4, 9, 14)
        }
        for (int j = 0; j < 16; j++) out[i * 16 + j] = in[i * 16 + j] ^ (x[j] + s[j]);
    }
}

void walsh_hadamard(const int *in, int *out, int rows) {
    memcpy(out, in, rows * 512 * sizeof(int));
    for (int r = 0; r < rows; r++, out += 512)
        for (int half = 1; half < 512; half *= 2)
            for (int at = 0; at < 512; at += 2 * half)
                for (int j = at; j < at + half; j++) {
                    int a = out[j], b = out[j + half];
                    out[j] = a + b, out[j + half] = a - b;
                }
}

void ntt(const u32 *in, const u32 *powers, u32 *out, int rows) {
    const u64 prime = 998244353;
    for (int r = 0; r < rows; r++, in += 256, out += 256) {
        for (int i = 0, j = 0; i < 256; i++) {
            out[j] = in[i];
            int bit = 128;
            for (; j & bit; bit >>= 1) j ^= bit;
            j ^= bit;
        }
        for (int half = 1; half < 256; half *= 2)
            for (int at = 0; at < 256; at += 2 * half)
                for (int j = 0; j < half; j++) {
                    u32 a = out[at + j], b = out[at + j + half] * (u64)powers[j * (128 / half)] % prime;
                    out[at + j] = a + b < prime ? a + b : a + b - prime;
                    out[at + j + half] = a >= b ? a - b : a + prime - b;
                }
    }
}

void minhash(const int *first, const u32 *word, u32 *least, int documents) {
    for (int i = 0; i < documents; i++, least += 16) {
        memset(least, 255, 64);
        for (int j = first[i]; j < first[i + 1]; j++)
            for (int h = 0; h < 16; h++) {
                u32 x = (word[j] ^ h * 0x9e3779b9u) * 0x85ebca6bu;
                x = (x ^ x >> 13) * 0xc2b2ae35u;
                x ^= x >> 16;
                least[h] = x < least[h] ? x : least[h];
            }
    }
}

void bloom(const u32 *key, u32 *bits, int n, u32 size) {
    for (int i = 0; i < n; i++)
        for (u32 h = 0; h < 4; h++) {
            u32 x = (key[i] + h) * 0x9e3779b1u;
            x = (x ^ x >> 15) % size;
            bits[x / 32] |= 1u << x % 32;
        }
}

void varint_sum(const u8 *text, const int *first, u64 *sum, int parts) {
    for (int i = 0; i < parts; i++) {
        u64 total = 0;
        for (int at = first[i]; at < first[i + 1];) {
            u64 value = 0;
            int shift = 0;
            u8 byte;
            do {
                byte = text[at++];
                value |= (u64)(byte & 127) << shift;
                shift += 7;
            } while (byte & 128);
            total += value;
        }
        sum[i] = total;
    }
}

void sieve(const int *primes, int count, int *found, int first, int segments) {
    for (int s = 0; s < segments; s++) {
        u8 composite[4096] = {0};
        int low = first + s * 4096, left = 0;
        for (int p = 0; p < count; p++)
            for (int j = (primes[p] - low % primes[p]) % primes[p]; j < 4096; j += primes[p]) composite[j] = 1;
        for (int j = 0; j < 4096; j++) left += !composite[j];
        found[s] = left;
    }
}

void biquad(const float *in, float *out, int channels, int length, float b0, float b1, float b2, float a1, float a2) {
    for (int c = 0; c < channels; c++) {
        float s1 = 0, s2 = 0;
        for (int t = 0; t < length; t++) {
            float x = in[c * length + t], y = b0 * x + s1;
            s1 = b1 * x - a1 * y + s2, s2 = b2 * x - a2 * y;
            out[c * length + t] = y;
        }
    }
}

void sobel(const u8 *in, u8 *out, int w, int h) {
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            const u8 *p = in + y * w + x;
            if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
                out[y * w + x] = 0;
                continue;
            }
            int across = p[1 - w] + 2 * p[1] + p[w + 1] - p[-w - 1] - 2 * p[-1] - p[w - 1];
            int down = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[1 - w];
            int sum = abs(across) + abs(down);
            out[y * w + x] = sum < 255 ? sum : 255;
        }
}
