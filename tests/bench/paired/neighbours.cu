// The kernels of neighbours.py as one writes them in CUDA C++.

#include <math_constants.h>

extern "C" __global__ void conv1d(
    int n, const float* __restrict__ x, const float* __restrict__ filter, float* __restrict__ y
) {
    __shared__ float part[128 + 8];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    for (int j = t; j < 128 + 8; j += 128) {
        int at = blockIdx.x * 128 + j - 4;
        part[j] = at >= 0 && at < n ? x[at] : 0.0f;
    }
    __syncthreads();
    if (i >= n) return;
    float acc = 0.0f;
    for (int k = 0; k < 9; k++) acc += part[t + k] * filter[k];
    y[i] = acc;
}

extern "C" __global__ void stencil5(
    int h, int w, float rate, const float* __restrict__ x, float* __restrict__ y
) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < 1 || i >= h - 1 || j < 1 || j >= w - 1) return;
    const float* at = x + i * w + j;
    y[i * w + j] = at[0] + rate * (at[-1] + at[1] + at[-w] + at[w] - 4.0f * at[0]);
}

extern "C" __global__ void heat3d(
    int n, float rate, const float* __restrict__ x, float* __restrict__ y
) {
    int k = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (k < 1 || k >= n - 1 || j < 1 || j >= n - 1) return;
    const float* at = x + j * n + k;
    float below = at[0], here = at[n * n];
    for (int i = 1; i < n - 1; i++) {
        const float* p = at + i * n * n;
        float above = p[n * n];
        y[i * n * n + j * n + k] = here + rate * (below + above + p[-1] + p[1] + p[-n] + p[n] - 6.0f * here);
        below = here;
        here = above;
    }
}

extern "C" __global__ void n_body(int n, float eps, const float4* __restrict__ bodies, float4* __restrict__ out) {
    __shared__ float4 tile[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    float4 me = bodies[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int start = 0; start < n; start += 128) {
        tile[t] = bodies[start + t];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 128; j++) {
            float4 other = tile[j];
            float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + eps);
            float s = other.w * inverse * inverse * inverse;
            ax += dx * s;
            ay += dy * s;
            az += dz * s;
        }
        __syncthreads();
    }
    out[i] = make_float4(ax, ay, az, me.w);
}

__device__ float exp2_approx(float v) {
    float power;
    asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(v));
    return power;
}

extern "C" __global__ void decode(
    int keys, float scale, const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
    float* __restrict__ out
) {
    // A warp a head of 128; keys of a head lie together.
    int lane = threadIdx.x, head = blockIdx.x * blockDim.y + threadIdx.y;
    float query[4], sums[4] = {}, top = -CUDART_INF_F, total = 0.0f;
    for (int j = 0; j < 4; j++) query[j] = q[head * 128 + lane + 32 * j];
    k += (size_t)head * keys * 128;
    v += (size_t)head * keys * 128;
    for (int key = 0; key < keys; key++) {
        float score = 0.0f;
        for (int j = 0; j < 4; j++) score += query[j] * k[key * 128 + lane + 32 * j];
        for (int offset = 16; offset; offset /= 2) score += __shfl_xor_sync(0xffffffff, score, offset);
        score *= scale;
        float higher = fmaxf(top, score);
        float weight = exp2_approx(score - higher), shrink = exp2_approx(top - higher);
        top = higher;
        total = total * shrink + weight;
        for (int j = 0; j < 4; j++) sums[j] = sums[j] * shrink + weight * v[key * 128 + lane + 32 * j];
    }
    float inverse;
    asm("rcp.approx.f32 %0, %1;" : "=f"(inverse) : "f"(total));
    for (int j = 0; j < 4; j++) out[head * 128 + lane + 32 * j] = sums[j] * inverse;
}
