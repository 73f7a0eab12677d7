// Transforms, ciphers, sketches and codes: integers in registers, shared memory and bits.

__device__ __forceinline__ unsigned turned(unsigned x, int by) { return x << by | x >> (32 - by); }

// ChaCha20, a block of 64 bytes a thread.
extern "C" __global__ void chacha20(const unsigned *key, const unsigned *in, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, x[16];
    for (int j = 0; j < 8; j++) s[4 + j] = key[j];
    s[12] = i, s[13] = key[8], s[14] = key[9], s[15] = key[10];
    for (int j = 0; j < 16; j++) x[j] = s[j];
#define QUARTER(a, b, c, d)                                             \
    x[a] += x[b], x[d] = turned(x[d] ^ x[a], 16), x[c] += x[d], x[b] = turned(x[b] ^ x[c], 12), \
    x[a] += x[b], x[d] = turned(x[d] ^ x[a], 8), x[c] += x[d], x[b] = turned(x[b] ^ x[c], 7);
    for (int r = 0; r < 10; r++) {
        QUARTER(0, 4, 8, 12) QUARTER(1, 5, 9, 13) QUARTER(2, 6, 10, 14) QUARTER(3, 7, 11, 15)
        QUARTER(0, 5, 10, 15) QUARTER(1, 6, 11, 12) QUARTER(2, 7, 8, 13) QUARTER(3, 4, 9, 14)
    }
    for (int j = 0; j < 16; j++) out[i * 16 + j] = in[i * 16 + j] ^ (x[j] + s[j]);
}

// The Walsh-Hadamard transform of rows of 512 numbers, in shared memory.
extern "C" __global__ void walsh_hadamard(const int *in, int *out) {
    __shared__ int t[512];
    int i = threadIdx.x;
    t[i] = in[blockIdx.x * 512 + i], t[i + 256] = in[blockIdx.x * 512 + i + 256];
    for (int half = 1; half < 512; half *= 2) {
        __syncthreads();
        int at = i / half * 2 * half + i % half, a = t[at], b = t[at + half];
        t[at] = a + b, t[at + half] = a - b;
    }
    __syncthreads();
    out[blockIdx.x * 512 + i] = t[i], out[blockIdx.x * 512 + i + 256] = t[i + 256];
}

// Butterflies of a number-theoretic transform modulo 998244353; the powers of the root are a table.
extern "C" __global__ void ntt(const unsigned *in, const unsigned *powers, unsigned *out) {
    __shared__ unsigned t[256];
    const unsigned long long prime = 998244353;
    int i = threadIdx.x;
    in += blockIdx.x * 256, out += blockIdx.x * 256;
    t[__brev(i) >> 24] = in[i], t[__brev(i + 128) >> 24] = in[i + 128];
    for (int half = 1; half < 256; half *= 2) {
        __syncthreads();
        int j = i % half, at = i / half * 2 * half + j;
        unsigned a = t[at], b = t[at + half] * (unsigned long long)powers[j * (128 / half)] % prime;
        t[at] = a + b < prime ? a + b : a + b - prime, t[at + half] = a >= b ? a - b : a + prime - b;
    }
    __syncthreads();
    out[i] = t[i], out[i + 128] = t[i + 128];
}

// The least hashes of the words of documents, for sixteen hash functions.
extern "C" __global__ void minhash(const int *first, const unsigned *word, unsigned *least, int documents) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= documents) return;
    unsigned best[16];
    for (int h = 0; h < 16; h++) best[h] = ~0u;
    for (int j = first[i]; j < first[i + 1]; j++)
        for (int h = 0; h < 16; h++) {
            unsigned x = (word[j] ^ h * 0x9e3779b9u) * 0x85ebca6bu;
            x = (x ^ x >> 13) * 0xc2b2ae35u;
            best[h] = min(best[h], x ^ x >> 16);
        }
    for (int h = 0; h < 16; h++) least[i * 16 + h] = best[h];
}

extern "C" __global__ void bloom(const unsigned *key, unsigned *bits, int n, unsigned size) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        for (unsigned h = 0; h < 4; h++) {
            unsigned x = (key[i] + h) * 0x9e3779b1u;
            x = (x ^ x >> 15) % size;
            atomicOr(bits + x / 32, 1u << x % 32);
        }
}

// Sums of numbers of seven bits a byte, each thread from where its part begins.
extern "C" __global__ void varint_sum(const unsigned char *text, const int *first, unsigned long long *sum, int parts) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= parts) return;
    unsigned long long total = 0;
    for (int at = first[i]; at < first[i + 1];) {
        unsigned long long value = 0;
        int shift = 0;
        unsigned char byte;
        do {
            byte = text[at++];
            value |= (unsigned long long)(byte & 127) << shift;
            shift += 7;
        } while (byte & 128);
        total += value;
    }
    sum[i] = total;
}

// Primes by a sieve in shared memory, a segment of 4096 numbers a block.
extern "C" __global__ void sieve(const int *primes, int count, int *found, int first) {
    __shared__ unsigned char composite[4096];
    __shared__ int left;
    int low = first + blockIdx.x * 4096;
    for (int j = threadIdx.x; j < 4096; j += blockDim.x) composite[j] = 0;
    if (threadIdx.x == 0) left = 0;
    __syncthreads();
    for (int p = 0; p < count; p++) {
        int prime = primes[p];
        for (int j = (prime - low % prime) % prime + threadIdx.x * prime; j < 4096; j += blockDim.x * prime)
            composite[j] = 1;
        __syncthreads();
    }
    int mine = 0;
    for (int j = threadIdx.x; j < 4096; j += blockDim.x) mine += !composite[j];
    atomicAdd(&left, mine);
    __syncthreads();
    if (threadIdx.x == 0) found[blockIdx.x] = left;
}

// A filter of second order along each channel; the samples of a channel lie one behind the other.
extern "C" __global__ void biquad(const float *in, float *out, int channels, int length, float b0, float b1, float b2,
                                  float a1, float a2) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    float s1 = 0, s2 = 0;
    for (int t = 0; t < length; t++) {
        float x = in[c * length + t], y = b0 * x + s1;
        s1 = b1 * x - a1 * y + s2, s2 = b2 * x - a2 * y;
        out[c * length + t] = y;
    }
}

// The strength of edges in a picture of bytes.
extern "C" __global__ void sobel(const unsigned char *in, unsigned char *out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        out[y * w + x] = 0;
        return;
    }
    const unsigned char *p = in + y * w + x;
    int across = p[1 - w] + 2 * p[1] + p[w + 1] - p[-w - 1] - 2 * p[-1] - p[w - 1];
    int down = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[1 - w];
    out[y * w + x] = min(255, abs(across) + abs(down));
}
