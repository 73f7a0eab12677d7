// Doubles, also with directed rounding, 64-bit integers, half precision, and mma.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>

// Intervals times intervals: bounds rounded down and up.
extern "C" __global__ void intervals(const double2 *a, const double2 *b, double2 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double2 x = a[i], y = b[i];
    double low = fmin(fmin(__dmul_rd(x.x, y.x), __dmul_rd(x.x, y.y)), fmin(__dmul_rd(x.y, y.x), __dmul_rd(x.y, y.y)));
    double high = fmax(fmax(__dmul_ru(x.x, y.x), __dmul_ru(x.x, y.y)), fmax(__dmul_ru(x.y, y.x), __dmul_ru(x.y, y.y)));
    out[i] = make_double2(__dadd_rd(low, x.x), __dadd_ru(high, x.y));
}

// Heat in a rod of doubles: steps within a block, whose ends stay.
extern "C" __global__ void heat_double(const double *in, double *out, int steps, double r) {
    __shared__ double t[2][256];
    int x = threadIdx.x, from = 0;
    t[0][x] = t[1][x] = in[blockIdx.x * 256 + x];
    __syncthreads();
    for (int s = 0; s < steps; s++) {
        if (x > 0 && x < 255) t[1 - from][x] = t[from][x] + r * (t[from][x - 1] - 2.0 * t[from][x] + t[from][x + 1]);
        from = 1 - from;
        __syncthreads();
    }
    out[blockIdx.x * 256 + x] = t[from][x];
}

// Sums without loss (Kahan), a thread a chunk.
extern "C" __global__ void kahan_sum(const double *in, double *out, int chunk, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i * chunk >= n) return;
    double sum = 0.0, lost = 0.0;
    for (int k = i * chunk; k < min(n, (i + 1) * chunk); k++) {
        double v = in[k] - lost, next = sum + v;
        lost = (next - sum) - v;
        sum = next;
    }
    out[i] = sum;
}

// Powers modulo primes, products by the high half.
extern "C" __global__ void modular_power(const unsigned long long *base, const unsigned *exponent, unsigned long long *out, unsigned long long p, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long x = base[i] % p, y = 1;
    for (unsigned e = exponent[i]; e; e >>= 1) {
        if (e & 1) y = y * x % p;
        x = x * x % p;
    }
    out[i] = y;
}

// xorshift and a wide product: 64 bits in, 128 in between.
extern "C" __global__ void hash64(const unsigned long long *in, unsigned long long *out, int rounds, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long v = in[i];
    for (int k = 0; k < rounds; k++) {
        v ^= v >> 32;
        unsigned long long low = v * 0x9E3779B97F4A7C15ull, high = __umul64hi(v, 0x9E3779B97F4A7C15ull);
        v = low ^ high ^ (v << 23 | v >> 41);
    }
    out[i] = v;
}

extern "C" __global__ void axpy_half2(const __half2 *x, const __half2 *y, __half2 *out, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __hfma2(__float2half2_rn(a), x[i], y[i]);
}

extern "C" __global__ void bf16_scale(const __nv_bfloat16 *x, const float *scale, __nv_bfloat16 *out, int columns) {
    int row = blockIdx.x;
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        out[row * columns + j] = __float2bfloat16(__bfloat162float(x[row * columns + j]) * scale[row]);
}

// A product in halves on tensor cores, a warp 16 x 16.
extern "C" __global__ void wmma_half(const __half *a, const __half *b, float *c, int n) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> left;
    fragment<matrix_b, 16, 16, 16, __half, row_major> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    int row = blockIdx.y * 16, col = (blockIdx.x * 4 + threadIdx.y) * 16;
    fill_fragment(sum, 0.0f);
    for (int k = 0; k < n; k += 16) {
        load_matrix_sync(left, a + row * n + k, n);
        load_matrix_sync(right, b + k * n + col, n);
        mma_sync(sum, left, right, sum);
    }
    store_matrix_sync(c + row * n + col, sum, n, mem_row_major);
}
