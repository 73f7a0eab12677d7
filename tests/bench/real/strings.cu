// Bytes and words of bits: search, case, checksums, base 64, and SHA-256 with its rounds unrolled.

// All places where a needle stands; each block keeps its part of the text in shared memory.
extern "C" __global__ void substring(const char *text, int n, const char *needle, int length, int *count, int *first) {
    __shared__ char part[256 + 32];
    int base = blockIdx.x * 256, t = threadIdx.x;
    for (int k = t; k < 256 + length - 1; k += 256) part[k] = base + k < n ? text[base + k] : 0;
    __syncthreads();
    if (base + t > n - length) return;
    for (int k = 0; k < length; k++)
        if (part[t + k] != needle[k]) return;
    atomicAdd(count, 1);
    atomicMin(first, base + t);
}

extern "C" __global__ void to_upper(const char *in, char *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    char c = in[i];
    out[i] = c >= 'a' && c <= 'z' ? c - 32 : c;
}

// Where words begin, counted for each line.
extern "C" __global__ void count_words(const char *text, const int *start, int *words, int lines) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= lines) return;
    int count = 0;
    bool inside = false;
    for (int k = start[i]; k < start[i + 1]; k++) {
        bool space = text[k] == ' ' || text[k] == '\t';
        if (!space && !inside) count++;
        inside = !space;
    }
    words[i] = count;
}

// CRC-32 of records, by a table in constant memory, a byte a step.
__constant__ unsigned crc_table[256];
extern "C" __global__ void crc32(const unsigned char *in, unsigned *out, int n, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned crc = ~0u;
    for (int k = 0; k < length; k++) crc = crc_table[(crc ^ in[i * length + k]) & 255] ^ crc >> 8;
    out[i] = ~crc;
}

extern "C" __global__ void base64(const unsigned char *in, unsigned char *out, int groups) {
    const char *digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= groups) return;
    unsigned v = in[3 * i] << 16 | in[3 * i + 1] << 8 | in[3 * i + 2];
    for (int k = 0; k < 4; k++) out[4 * i + k] = digits[v >> (18 - 6 * k) & 63];
}

__constant__ unsigned sha_k[64];
__device__ unsigned turned(unsigned x, int n) { return __funnelshift_r(x, x, n); }

// The hash of messages of one block each, twice: all 128 rounds are unrolled.
extern "C" __global__ void sha256_twice(const unsigned *messages, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned w[16], s[8];
    const unsigned start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
#pragma unroll
    for (int k = 0; k < 16; k++) w[k] = messages[i * 16 + k];
#pragma unroll
    for (int pass = 0; pass < 2; pass++) {
        unsigned a = start[0], b = start[1], c = start[2], d = start[3], e = start[4], f = start[5], g = start[6], h = start[7];
#pragma unroll
        for (int r = 0; r < 64; r++) {
            if (r >= 16) {
                unsigned p = w[(r + 1) % 16], q = w[(r + 14) % 16];
                unsigned s0 = turned(p, 7) ^ turned(p, 18) ^ p >> 3, s1 = turned(q, 17) ^ turned(q, 19) ^ q >> 10;
                w[r % 16] += s0 + w[(r + 9) % 16] + s1;
            }
            unsigned t1 = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + sha_k[r] + w[r % 16];
            unsigned t2 = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
            h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
        }
        s[0] = start[0] + a, s[1] = start[1] + b, s[2] = start[2] + c, s[3] = start[3] + d;
        s[4] = start[4] + e, s[5] = start[5] + f, s[6] = start[6] + g, s[7] = start[7] + h;
#pragma unroll
        for (int k = 0; k < 8; k++) w[k] = s[k];
        w[8] = 0x80000000;
#pragma unroll
        for (int k = 9; k < 15; k++) w[k] = 0;
        w[15] = 256;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) out[i * 8 + k] = s[k];
}
