// Reductions: by a tree in shared memory, by shuffles, with a grid stride, and by cooperative groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void sum_shared(const float *in, float *out, int n) {
    __shared__ float part[256];
    int t = threadIdx.x, i = blockIdx.x * 512 + t;
    part[t] = (i < n ? in[i] : 0.0f) + (i + 256 < n ? in[i + 256] : 0.0f);
    __syncthreads();
    for (int d = 128; d > 0; d >>= 1) {
        if (t < d) part[t] += part[t + d];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}

// The block need not be a multiple of the warp.
extern "C" __global__ void sum_any_block(const int *in, int *out, int n) {
    extern __shared__ int part_any[];
    int t = threadIdx.x, sum = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    part_any[t] = sum;
    __syncthreads();
    for (int left = blockDim.x; left > 1;) {
        int half = (left + 1) / 2;
        if (t + half < left) part_any[t] += part_any[t + half];
        left = half;
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part_any[0];
}

__device__ float warp_sum(float v) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
    return v;
}

extern "C" __global__ void dot_shuffle(const float *x, const float *y, float *out, int n) {
    __shared__ float part[32];
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i] * y[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f;
        sum = warp_sum(sum);
        if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }
}

// The largest value of each row and where it is; equal ones: the first.
extern "C" __global__ void argmax_rows(const float *in, float *top, int *where, int columns) {
    const float *row = in + blockIdx.x * columns;
    float best = -INFINITY;
    int at = 0;
    for (int j = threadIdx.x; j < columns; j += 32)
        if (row[j] > best) best = row[j], at = j;
    for (int d = 16; d > 0; d /= 2) {
        float other = __shfl_xor_sync(~0u, best, d);
        int other_at = __shfl_xor_sync(~0u, at, d);
        if (other > best || (other == best && other_at < at)) best = other, at = other_at;
    }
    if (threadIdx.x == 0) top[blockIdx.x] = best, where[blockIdx.x] = at;
}

// Sums of 16 by a tiled partition, then atomics.
extern "C" __global__ void cg_reduce(const int *in, int *out, int n) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<16>(block);
    int sum = 0;
    for (int i = cg::this_grid().thread_rank(); i < n; i += cg::this_grid().size()) sum += in[i];
    sum = cg::reduce(tile, sum, cg::plus<int>());
    if (tile.thread_rank() == 0) atomicAdd(out + blockIdx.x, sum);
}
