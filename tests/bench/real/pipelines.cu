// Pipelines and flags within a block: asynchronous copies, named barriers, volatile memory.

// A stencil of 9 over tiles that cp.async brings, in four stages.
extern "C" __global__ void __launch_bounds__(128) cp_async_stencil(const float *in, float *out, int n, int tiles) {
    __shared__ float s[4][128 + 8];
    int t = threadIdx.x, base = blockIdx.x * tiles * 128;
    auto issue = [&](int k) {
        if (k < tiles) for (int i = t; i < 136; i += 128) {
            int g = base + k * 128 + i - 4; bool ok = g >= 0 && g < n;
            unsigned a = (unsigned)__cvta_generic_to_shared(&s[k & 3][i]);
            const float *from = ok ? in + g : in;
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(a), "l"(from), "r"(ok ? 4 : 0));
        }
        asm volatile("cp.async.commit_group;");
    };
    issue(0); issue(1); issue(2);
    for (int k = 0; k < tiles; k++) {
        asm volatile("cp.async.wait_group 2;");
        __syncthreads();
        float v = 0;
        for (int d = -4; d <= 4; d++) v += s[k & 3][t + 4 + d] * (5 - abs(d));
        int g = base + k * 128 + t;
        if (g < n) out[g] = v;
        issue(k + 3);
    }
}

// Two halves of a block hand tiles over by named barriers, in two stages.
extern "C" __global__ void named_barriers(const float *in, float *out, int tiles) {
    __shared__ float buf[2][64];
    int t = threadIdx.x & 63;
    in += blockIdx.x * tiles * 64; out += blockIdx.x * 64;
    if (threadIdx.x < 64) {
        for (int k = 0; k < tiles; k++) {
            if (k >= 2) asm volatile("bar.sync %0, 128;" ::"r"(3 + (k & 1)) : "memory");
            buf[k & 1][t] = in[k * 64 + t] * 2.0f;
            asm volatile("bar.arrive %0, 128;" ::"r"(1 + (k & 1)) : "memory");
        }
    } else {
        float s = 0;
        for (int k = 0; k < tiles; k++) {
            asm volatile("bar.sync %0, 128;" ::"r"(1 + (k & 1)) : "memory");
            s += buf[k & 1][63 - t];
            if (k + 2 < tiles) asm volatile("bar.arrive %0, 128;" ::"r"(3 + (k & 1)) : "memory");
        }
        out[t] = s;
    }
}

// A scan in volatile shared memory.
extern "C" __global__ void volatile_scan(const int *in, int *out) {
    __shared__ volatile int s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        int v = t >= d ? s[t - d] : 0;
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    out[blockIdx.x * 256 + t] = s[t];
}
