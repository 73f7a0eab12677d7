// nvcc.ptx is what `nvcc -ptx -arch=sm_80 -lineinfo nvcc.cu` makes of this.
__constant__ float weights[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ int total = 7;
__device__ const char *message = "sum\n";
struct Pair { int a; double b; char c[3]; };

__device__ __noinline__ int extra(int x, Pair p) { return x + total + p.c[1]; }
__device__ __forceinline__ float scaled(float x, int i) { return x * weights[i & 3]; }

extern "C" __global__ void __launch_bounds__(256, 2) sum(float *out, const float *__restrict__ in, int n, Pair p) {
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? scaled(in[i], i) : 0.0f;
    __syncthreads();
    for (int d = 128; d > 0; d >>= 1) {
        if (threadIdx.x < d) tile[threadIdx.x] += tile[threadIdx.x + d];
        __syncthreads();
    }
    float spill[20];
    for (int j = 0; j < 20; j++) spill[(j * i) % 20] = j / tile[0];
    if (i < n) atomicAdd(out, tile[0] + extra(i, p) + spill[i % 20] + message[0]);
}

extern "C" __global__ void choose(double *x, unsigned long long *q, int n) {
    switch (n) {
    case 0: x[0] = 1; break;
    case 1: x[1] = 5; break;
    case 2: x[0] *= x[3]; break;
    case 3: x[5] = x[6] / 3; break;
    default: q[threadIdx.x] = __shfl_xor_sync(~0u, q[threadIdx.x], 3) + __popcll(q[1]);
    }
}
