// The kernels of elementwise.py as one writes them in CUDA C++.

extern "C" __global__ void saxpy(int n, float a, const float* __restrict__ x, float* __restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void copy(int n, const float4* __restrict__ x, float4* __restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) y[i] = x[i];
}

extern "C" __global__ void gelu(int n, const float* __restrict__ x, float* __restrict__ y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float v = x[i], t;
        asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(v * (0.7978845608f + 0.0356774081f * (v * v))));
        y[i] = 0.5f * v * (1.0f + t);
    }
}

extern "C" __global__ void adamw(
    int n, float rate, float beta1, float beta2, float eps, float decay, const float* __restrict__ gradient,
    float* __restrict__ weight, float* __restrict__ first, float* __restrict__ second
) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float g = gradient[i], w = weight[i];
    float m = beta1 * first[i] + (1.0f - beta1) * g;
    float v = beta2 * second[i] + (1.0f - beta2) * g * g;
    first[i] = m;
    second[i] = v;
    weight[i] = w - rate * (__fdividef(m, __fsqrt_rn(v) + eps) + decay * w);
}

extern "C" __global__ void rope(
    unsigned heads, unsigned half, const float* __restrict__ cosines, const float* __restrict__ sines, float* __restrict__ x
) {
    unsigned token = blockIdx.x;
    for (unsigned i = threadIdx.x; i < heads * half; i += blockDim.x) {
        unsigned head = i / half, at = i % half;
        float c = cosines[token * half + at], s = sines[token * half + at];
        float* row = x + (token * heads + head) * half * 2;
        float a = row[at], b = row[at + half];
        row[at] = a * c - b * s;
        row[at + half] = a * s + b * c;
    }
}

extern "C" __global__ void embedding(
    int dim, const unsigned* __restrict__ tokens, const float4* __restrict__ table, float4* __restrict__ out
) {
    unsigned token = tokens[blockIdx.x];
    for (int i = threadIdx.x; i < dim / 4; i += blockDim.x)
        out[blockIdx.x * (dim / 4) + i] = table[(size_t)token * (dim / 4) + i];
}
