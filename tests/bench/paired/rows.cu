// The kernels of rows.py as one writes them in CUDA C++.

#include <math_constants.h>

#define WARPS 8

__device__ float warp_sum(float v) {
    for (int offset = 16; offset; offset /= 2) v += __shfl_xor_sync(0xffffffff, v, offset);
    return v;
}

__device__ float warp_max(float v) {
    for (int offset = 16; offset; offset /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, offset));
    return v;
}

__device__ float block_sum(float v) {
    __shared__ float parts[WARPS];
    v = warp_sum(v);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    float total = parts[0];
    for (int i = 1; i < WARPS; i++) total += parts[i];
    return total;
}

__device__ float block_max(float v) {
    __shared__ float parts[WARPS];
    v = warp_max(v);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    float top = parts[0];
    for (int i = 1; i < WARPS; i++) top = fmaxf(top, parts[i]);
    return top;
}

extern "C" __global__ void softmax(int n, const float* __restrict__ x, float* __restrict__ y) {
    x += (size_t)blockIdx.x * n;
    y += (size_t)blockIdx.x * n;
    float top = -CUDART_INF_F, total = 0.0f;
    for (int i = threadIdx.x; i < n; i += WARPS * 32) top = fmaxf(top, x[i]);
    float shift = block_max(top) * -1.44269504f;
    for (int i = threadIdx.x; i < n; i += WARPS * 32) {
        float power;
        asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(x[i] * 1.44269504f + shift));
        y[i] = power;
        total += power;
    }
    float scale;
    asm("rcp.approx.f32 %0, %1;" : "=f"(scale) : "f"(block_sum(total)));
    for (int i = threadIdx.x; i < n; i += WARPS * 32) y[i] *= scale;
}

extern "C" __global__ void layer_norm(
    int n, float eps, const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
    float* __restrict__ y
) {
    x += (size_t)blockIdx.x * n;
    y += (size_t)blockIdx.x * n;
    float total = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < n; i += WARPS * 32) total += x[i];
    float mean = __fdividef(block_sum(total), n);
    for (int i = threadIdx.x; i < n; i += WARPS * 32) {
        float centred = x[i] - mean;
        squares += centred * centred;
    }
    __syncthreads();
    float scale = rsqrtf(__fdividef(block_sum(squares), n) + eps);
    for (int i = threadIdx.x; i < n; i += WARPS * 32) y[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}

extern "C" __global__ void rms_norm(
    const float4* __restrict__ x, const float4* __restrict__ weight, float4* __restrict__ y, float eps
) {
    const int n = 4096;
    x += (size_t)blockIdx.x * (n / 4);
    y += (size_t)blockIdx.x * (n / 4);
    float4 values[n / (4 * WARPS * 32)];
    float squares = 0.0f;
    for (int j = 0; j < n / (4 * WARPS * 32); j++) {
        float4 v = values[j] = x[threadIdx.x + j * WARPS * 32];
        squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    float scale = rsqrtf(block_sum(squares) * (1.0f / n) + eps);
    for (int j = 0; j < n / (4 * WARPS * 32); j++) {
        float4 v = values[j], w = weight[threadIdx.x + j * WARPS * 32];
        y[threadIdx.x + j * WARPS * 32] =
            make_float4(v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w);
    }
}

extern "C" __global__ void dot(
    int n, const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out
) {
    float total = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) total += x[i] * y[i];
    total = block_sum(total);
    if (threadIdx.x == 0) atomicAdd(out, total);
}

extern "C" __global__ void scan(int n, const unsigned* __restrict__ x, unsigned* __restrict__ y) {
    __shared__ unsigned totals[WARPS];
    int i = blockIdx.x * (WARPS * 32) + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned v = i < n ? x[i] : 0;
    for (int offset = 1; offset < 32; offset *= 2) {
        unsigned other = __shfl_up_sync(0xffffffff, v, offset);
        if (lane >= offset) v += other;
    }
    if (lane == 31) totals[warp] = v;
    __syncthreads();
    for (int other = 0; other < WARPS - 1; other++)
        if (other < warp) v += totals[other];
    if (i < n) y[i] = v;
}

extern "C" __global__ void histogram(
    int n, const unsigned char* __restrict__ data, unsigned* __restrict__ counts
) {
    __shared__ unsigned mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&mine[data[i]], 1u);
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}
