// Device functions that are called: not inlined, through a pointer, recursively; assertions.
#include <assert.h>

__device__ __noinline__ float polynomial(float x, const float *c, int degree) {
    float y = c[degree];
    for (int k = degree - 1; k >= 0; k--) y = y * x + c[k];
    return y;
}

extern "C" __global__ void noinline_call(const float *x, float *y, const float *c, int degree, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = polynomial(x[i], c, degree) - polynomial(-x[i], c, degree);
}

__device__ __noinline__ int rotated(int x, int y) { return (x << (y & 31)) | (unsigned(x) >> (-y & 31)); }
__device__ __noinline__ int mixed(int x, int y) { return (x ^ y) * 0x9E3779B1; }
__device__ __noinline__ int summed(int x, int y) { return 3 * x + y; }
typedef int (*Operation)(int, int);
__device__ Operation operations[3] = {rotated, mixed, summed};

// Which function is called depends on the data of the block.
extern "C" __global__ void function_pointer(const int *x, const int *which, int *out, int n, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = x[i];
    for (int k = 0; k < steps; k++) v = operations[which[(blockIdx.x + k) % steps]](v, k);
    out[i] = v;
}

// Ackermann's little sister: the number of ways to pay an amount with coins, recursively.
__device__ __noinline__ int ways(int amount, int coin) {
    const int worth[4] = {1, 2, 5, 10};
    if (amount == 0) return 1;
    if (amount < 0 || coin < 0) return 0;
    return ways(amount - worth[coin], coin) + ways(amount, coin - 1);
}

extern "C" __global__ void recursion(const int *amounts, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = ways(amounts[i], 3);
}

extern "C" __global__ void asserted(const float *x, const int *index, float *y, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int at = index[i];
    assert(at >= 0 && at < m);
    float v = x[at];
    assert(v == v);
    y[i] = 2.0f * v;
}
