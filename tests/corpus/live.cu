// What tests/test_nvcc.py compiles, in every way that nvcc has, and runs on the emulator.
#include <cstdio>
#if __has_include(<nv/target>)  // cooperative_groups needs nvidia-cuda-cccl
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define GROUPS
#endif

namespace shapes {
struct Shape {
    float a;
    __device__ explicit Shape(float a) : a(a) {}
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    using Shape::Shape;
    __device__ float area() const override { return a * a; }
};
struct Rectangle : Shape {
    float b;
    __device__ Rectangle(float a, float b) : Shape(a), b(b) {}
    __device__ float area() const override { return a * b; }
};
__global__ void areas(float *out) {
    int t = threadIdx.x;
    Shape *shape = t & 1 ? (Shape *)new Square(t) : (Shape *)new Rectangle(t, 3);
    out[t] = shape->area();
    delete shape;
}
}  // namespace shapes

__device__ __noinline__ int fibonacci(int n) {
    volatile int kept = n;
    return n < 2 ? kept : fibonacci(kept - 1) + fibonacci(kept - 2);
}
extern "C" __global__ void recursion(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x % 12); }

__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ __noinline__ int minus(int a, int b) { return a - b; }
__device__ int (*operations[])(int, int) = {add, times, minus};
extern "C" __global__ void pointers(const int *which, int *out) {
    out[threadIdx.x] = operations[which[threadIdx.x]](threadIdx.x, 7);
}

extern "C" __global__ void branches(const int *which, int *out) {
    int t = threadIdx.x, x = t;
    switch (which[t]) {
        case 0: x += 5; break;
        case 1: x *= 7; break;
        case 2: x ^= 0x55;  // and on
        case 3: x -= 2; break;
        case 4: x = x * x; break;
        case 5: x = -x; break;
        case 6: x = x / 3; break;
        default: x = 99;
    }
    out[t] = x;
}

struct Given { int count; double scale; const float *values; };
extern "C" __global__ void structs(Given given, double *out) {
    double sum = 0;
    for (int i = 0; i < given.count; i++) sum += given.scale * given.values[i];
    out[threadIdx.x] = sum + threadIdx.x;
}

__constant__ float table[4];
__device__ int counter = 5;
__device__ int *where = &counter;
extern "C" __global__ void variables(float *out) {
    if (threadIdx.x == 0) atomicAdd(where, 3);
    __syncthreads();
    out[threadIdx.x] = table[threadIdx.x & 3] + counter;
}

extern "C" __global__ void locals(const int *which, int *out) {
    int a[20];
    for (int i = 0; i < 20; i++) a[i] = i * threadIdx.x;
    auto bump = [&](int i) { a[i] += 1000; };
    bump(which[threadIdx.x]);
    int sum = 0;
    for (int i = 0; i < 20; i += 1 + (which[threadIdx.x] & 1)) sum += a[i];
    out[threadIdx.x] = sum;
}

extern "C" __global__ void wide(const unsigned long long *x, unsigned long long *out) {
    unsigned __int128 a = (unsigned __int128)x[0] << 64 | x[1], b = x[2], q = a / b, r = a % b;
    out[0] = q >> 64, out[1] = q, out[2] = r;
}

#ifdef GROUPS
extern "C" __global__ void groups(const int *x, int *out) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int t = threadIdx.x, sum = x[t];
    for (int d = warp.size() / 2; d > 0; d /= 2) sum += warp.shfl_xor(sum, d);
    out[t] = sum + (int)cg::coalesced_threads().size();
}

extern "C" __global__ void grid(int *x) {
    auto all = cg::this_grid();
    int i = all.thread_rank(), next = x[(i + 1) % all.size()];
    all.sync();
    x[i] = next;
}
#endif

extern "C" __global__ void prints(int n) {
    if (threadIdx.x < n) printf("thread %d of %u: %.2f %s\n", threadIdx.x, blockDim.x, threadIdx.x / 4.0, "done");
}

extern "C" __global__ void functions(const double *x, double *out) {
    int t = threadIdx.x;
    double *o = out + 6 * t, v = x[t];
    o[0] = sin(v), o[1] = exp(v), o[2] = pow(v, 1.7), o[3] = tgamma(v), o[4] = cbrt(v), o[5] = (double)sinf((float)v);
}
