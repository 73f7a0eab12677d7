// Blocks and warps that wait for each other: a lock, a chain of flags, the last block that finishes, a scan in one pass.
#include <cuda/atomic>

// A lock around a sum that all blocks add to; only one thread of each takes it.
extern "C" __global__ void spin_lock(const int *in, int *total, int *lock, int n) {
    __shared__ int part[128];
    int t = threadIdx.x, sum = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    part[t] = sum;
    for (int d = 64; d > 0; d /= 2) {
        __syncthreads();
        if (t < d) part[t] += part[t + d];
    }
    if (t == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
        *(volatile int *)total += part[0];
        __threadfence();
        atomicExch(lock, 0);
    }
}

// A prefix sum in one pass: a block waits for the sum of the one before it, by a flag that is volatile.
extern "C" __global__ void chained_scan(const int *in, int *out, volatile int *sums, volatile int *flags, int n, int epoch) {
    __shared__ int tile[256], before;
    int t = threadIdx.x, i = blockIdx.x * 256 + t, v = i < n ? in[i] : 0;
    tile[t] = v;
    for (int d = 1; d < 256; d *= 2) {
        __syncthreads();
        int w = t >= d ? tile[t - d] : 0;
        __syncthreads();
        tile[t] += w;
    }
    __syncthreads();
    if (t == 255) {
        int from = 0;
        if (blockIdx.x > 0) {
            while (flags[blockIdx.x - 1] != epoch) {}
            __threadfence();
            from = sums[blockIdx.x - 1];
        }
        sums[blockIdx.x] = from + tile[255];
        __threadfence();
        flags[blockIdx.x] = epoch;
        before = from;
    }
    __syncthreads();
    if (i < n) out[i] = tile[t] + before;
}

// Partial sums of all blocks; the one that finishes last adds them up.
extern "C" __global__ void last_block(const float *in, volatile float *parts, float *out, unsigned *count, int n) {
    __shared__ float part[256];
    __shared__ bool last;
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) sum += in[i];
    part[t] = sum;
    for (int d = 128; d > 0; d /= 2) {
        __syncthreads();
        if (t < d) part[t] += part[t + d];
    }
    if (t == 0) {
        parts[blockIdx.x] = part[0];
        __threadfence();
        last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && t == 0) {
        float all = 0.0f;
        for (int b = 0; b < gridDim.x; b++) all += parts[b];
        *out = all;
    }
}

// A warp makes what the next one takes, by release and acquire in shared memory.
extern "C" __global__ void acquire_release(const int *in, int *out, int rounds) {
    __shared__ int ready[4], box[4][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) ready[warp] = 0;
    __syncthreads();
    int v = in[blockIdx.x * 32 + lane];
    for (int r = 1; r <= rounds; r++) {
        if (warp > 0 || r > 1) {
            int from = (warp + 3) % 4, wanted = warp > 0 ? r : r - 1;
            if (lane == 0) {
                cuda::atomic_ref<int, cuda::thread_scope_block> flag(ready[from]);
                while (flag.load(cuda::memory_order_acquire) < wanted) {}
            }
            __syncwarp();
            v = box[from][lane];
        }
        for (int k = 0; k < 40; k++) v = v * 3 + warp + k;
        box[warp][lane] = v;
        __syncwarp();
        if (lane == 0) {
            cuda::atomic_ref<int, cuda::thread_scope_block> flag(ready[warp]);
            flag.store(r, cuda::memory_order_release);
        }
    }
    if (warp == 3) out[blockIdx.x * 32 + lane] = box[3][lane];
}
