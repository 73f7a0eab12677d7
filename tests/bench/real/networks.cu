// Layers of networks: rows by a block or by a warp, attention, activations, dropout, a small network unrolled.

__device__ float block_sum(float v, float *part) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0.0f;
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    __syncthreads();
    return v;
}

__device__ float block_max(float v, float *part) {
    for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : -INFINITY;
    for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
    __syncthreads();
    return v;
}

extern "C" __global__ void softmax_rows(const float *in, float *out, int columns) {
    __shared__ float part[32];
    const float *x = in + blockIdx.x * columns;
    float *y = out + blockIdx.x * columns, top = -INFINITY, sum = 0.0f;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) top = fmaxf(top, x[j]);
    top = block_max(top, part);
    for (int j = threadIdx.x; j < columns; j += blockDim.x) {
        float e = expf(x[j] - top);
        y[j] = e;
        sum += e;
    }
    sum = block_sum(sum, part);
    for (int j = threadIdx.x; j < columns; j += blockDim.x) y[j] /= sum;
}

extern "C" __global__ void layer_norm(const float *in, const float *weight, const float *bias, float *out, int columns, float eps) {
    __shared__ float part[32];
    const float *x = in + blockIdx.x * columns;
    float sum = 0.0f, squares = 0.0f;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) sum += x[j];
    float mean = block_sum(sum, part) / columns;
    for (int j = threadIdx.x; j < columns; j += blockDim.x) squares += (x[j] - mean) * (x[j] - mean);
    float scale = rsqrtf(block_sum(squares, part) / columns + eps);
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        out[blockIdx.x * columns + j] = (x[j] - mean) * scale * weight[j] + bias[j];
}

// A query a thread, 64 a block; keys and values in tiles; the softmax goes along.
extern "C" __global__ void attention_64(const float *q, const float *k, const float *v, float *out, int keys, float scale) {
    __shared__ float kt[16][32], vt[16][32];
    int i = blockIdx.x * 64 + threadIdx.x;
    float mine[32], acc[32], top = -INFINITY, total = 0.0f;
#pragma unroll
    for (int d = 0; d < 32; d++) mine[d] = q[i * 32 + d] * scale, acc[d] = 0.0f;
    for (int from = 0; from < keys; from += 16) {
        __syncthreads();
        for (int t = threadIdx.x; t < 16 * 32; t += 64) {
            kt[t / 32][t % 32] = k[from * 32 + t];
            vt[t / 32][t % 32] = v[from * 32 + t];
        }
        __syncthreads();
        for (int j = 0; j < 16; j++) {
            float score = 0.0f;
#pragma unroll
            for (int d = 0; d < 32; d++) score += mine[d] * kt[j][d];
            float higher = fmaxf(top, score), shrink = __expf(top - higher), weight = __expf(score - higher);
            total = total * shrink + weight;
#pragma unroll
            for (int d = 0; d < 32; d++) acc[d] = acc[d] * shrink + weight * vt[j][d];
            top = higher;
        }
    }
#pragma unroll
    for (int d = 0; d < 32; d++) out[i * 32 + d] = acc[d] / total;
}

extern "C" __global__ void gelu(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    y[i] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
}

__device__ unsigned mixed(unsigned x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

extern "C" __global__ void dropout(const float4 *x, float4 *y, unsigned seed, unsigned threshold, float scale, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 v = x[i];
    unsigned at = 4 * i + seed;
    v.x = mixed(at) >= threshold ? v.x * scale : 0.0f;
    v.y = mixed(at + 1) >= threshold ? v.y * scale : 0.0f;
    v.z = mixed(at + 2) >= threshold ? v.z * scale : 0.0f;
    v.w = mixed(at + 3) >= threshold ? v.w * scale : 0.0f;
    y[i] = v;
}

// 16 inputs, two hidden layers of 48, one output, for each thread: all of it unrolled, weights in constant memory.
__constant__ float weights[16 * 48 + 48 * 48 + 48];
extern "C" __global__ void perceptron(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x[16], h[48], g[48], sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 16; k++) x[k] = in[k * n + i];
#pragma unroll
    for (int j = 0; j < 48; j++) {
        float v = 0.0f;
#pragma unroll
        for (int k = 0; k < 16; k++) v += x[k] * weights[j * 16 + k];
        h[j] = fmaxf(v, 0.0f);
    }
#pragma unroll
    for (int j = 0; j < 48; j++) {
        float v = 0.0f;
#pragma unroll
        for (int k = 0; k < 48; k++) v += h[k] * weights[768 + j * 48 + k];
        g[j] = fmaxf(v, 0.0f);
    }
#pragma unroll
    for (int j = 0; j < 48; j++) sum += g[j] * weights[768 + 2304 + j];
    out[i] = sum;
}

extern "C" __global__ void adam(float *p, const float *g, float *m, float *v, float rate, float b1, float b2, float eps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float d = g[i], mm = b1 * m[i] + (1.0f - b1) * d, vv = b2 * v[i] + (1.0f - b2) * d * d;
    m[n + i] = mm, v[n + i] = vv;
    p[n + i] = p[i] - rate * mm / (sqrtf(vv) + eps);
}
