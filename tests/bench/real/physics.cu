// Bodies that attract each other, a transform of Fourier, random numbers, prices of options.

extern "C" __global__ void nbody(const float4 *bodies, float4 *forces, int n, float softening) {
    __shared__ float4 tile[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    float4 me = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int from = 0; from < n; from += 64) {
        int j = from + threadIdx.x;
        tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < 64; k++) {
            float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
            float s = tile[k].w * r * r * r;
            ax += dx * s, ay += dy * s, az += dz * s;
        }
        __syncthreads();
    }
    if (i < n) forces[i] = make_float4(ax, ay, az, 0.0f);
}

// 256 points by one block: bits reversed, then 8 stages in shared memory; the twiddle factors come in a table.
extern "C" __global__ void fft_radix2(const float2 *in, float2 *out, const float2 *twiddle) {
    __shared__ float2 v[256];
    int t = threadIdx.x;
    const float2 *mine = in + blockIdx.x * 256;
    v[__brev(t) >> 24] = mine[t];
    v[__brev(t + 128) >> 24] = mine[t + 128];
    for (int half = 1; half < 256; half *= 2) {
        __syncthreads();
        int k = t & (half - 1), a = 2 * t - k, b = a + half;
        float2 w = twiddle[k * (128 / half)], x = v[a], y = v[b];
        float re = y.x * w.x - y.y * w.y, im = y.x * w.y + y.y * w.x;
        v[a] = make_float2(x.x + re, x.y + im);
        v[b] = make_float2(x.x - re, x.y - im);
    }
    __syncthreads();
    out[blockIdx.x * 256 + t] = v[t];
    out[blockIdx.x * 256 + t + 128] = v[t + 128];
}

__device__ uint4 philox(uint4 c, uint2 key) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        unsigned h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x;
        unsigned h1 = __umulhi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
        c = make_uint4(h1 ^ c.y ^ key.x, l1, h0 ^ c.w ^ key.y, l0);
        key.x += 0x9E3779B9u, key.y += 0xBB67AE85u;
    }
    return c;
}

// How many of four points a step lie in a quarter of a circle, counted exactly in integers.
extern "C" __global__ void monte_carlo_pi(unsigned long long *inside, unsigned seed, int steps) {
    __shared__ unsigned part[128];
    int i = blockIdx.x * 128 + threadIdx.x;
    unsigned count = 0;
    for (int s = 0; s < steps; s++) {
        uint4 r = philox(make_uint4(i, s, 0, 0), make_uint2(seed, 0));
        unsigned long long x = r.x >> 1, y = r.y >> 1, z = r.z >> 1, w = r.w >> 1;
        count += (x * x + y * y) >> 62 == 0;
        count += (z * z + w * w) >> 62 == 0;
    }
    part[threadIdx.x] = count;
    for (int d = 64; d > 0; d /= 2) {
        __syncthreads();
        if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
    }
    if (threadIdx.x == 0) atomicAdd(inside, (unsigned long long)part[0]);
}

__device__ float normal_cdf(float x) { return 0.5f * erfcf(-x * 0.70710678f); }

extern "C" __global__ void black_scholes(const float *price, const float *strike, const float *years, float *call, float *put, float rate, float sigma, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = price[i], k = strike[i], t = years[i], root = sqrtf(t);
    float d1 = (logf(s / k) + (rate + 0.5f * sigma * sigma) * t) / (sigma * root), d2 = d1 - sigma * root;
    float discounted = k * expf(-rate * t), c = s * normal_cdf(d1) - discounted * normal_cdf(d2);
    call[i] = c;
    put[i] = c + discounted - s;
}

// Angles, with the slow path of large arguments in the code.
extern "C" __global__ void rotations(const float *angle, float2 *points, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s, c;
    sincosf(angle[i], &s, &c);
    float2 p = points[n + i];
    points[i] = make_float2(c * p.x - s * p.y, s * p.x + c * p.y);
}
