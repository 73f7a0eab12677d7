// Prefix sums: Hillis and Steele's, by shuffles, and in two kernels' phases.

extern "C" __global__ void scan_hillis_steele(const float *in, float *out, int n) {
    __shared__ float two[2][256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t, from = 0;
    two[0][t] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        two[1 - from][t] = two[from][t] + (t >= d ? two[from][t - d] : 0.0f);
        from = 1 - from;
        __syncthreads();
    }
    if (i < n) out[i] = two[from][t];
}

// Up and down a tree (Blelloch), exclusive, two values a thread.
extern "C" __global__ void scan_tree(const int *in, int *out, int n) {
    __shared__ int tree[256];
    int t = threadIdx.x, base = blockIdx.x * 256;
    tree[2 * t] = base + 2 * t < n ? in[base + 2 * t] : 0;
    tree[2 * t + 1] = base + 2 * t + 1 < n ? in[base + 2 * t + 1] : 0;
    int stride = 1;
    for (int d = 128; d > 0; d /= 2, stride *= 2) {
        __syncthreads();
        if (t < d) tree[stride * (2 * t + 2) - 1] += tree[stride * (2 * t + 1) - 1];
    }
    if (t == 0) tree[255] = 0;
    for (int d = 1; d < 256; d *= 2) {
        stride /= 2;
        __syncthreads();
        if (t < d) {
            int a = stride * (2 * t + 1) - 1, b = stride * (2 * t + 2) - 1, left = tree[a];
            tree[a] = tree[b];
            tree[b] += left;
        }
    }
    __syncthreads();
    if (base + 2 * t < n) out[base + 2 * t] = tree[2 * t];
    if (base + 2 * t + 1 < n) out[base + 2 * t + 1] = tree[2 * t + 1];
}

__device__ int warp_scan(int v) {
    for (int d = 1; d < 32; d *= 2) {
        int other = __shfl_up_sync(~0u, v, d);
        if (threadIdx.x % 32 >= d) v += other;
    }
    return v;
}

// Each warp scans in registers, the first warp scans the warps' sums.
extern "C" __global__ void scan_warps(const int *in, int *out, int n) {
    __shared__ int sums[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int v = warp_scan(i < n ? in[i] : 0);
    if (lane == 31) sums[warp] = v;
    __syncthreads();
    if (warp == 0) sums[lane] = warp_scan(lane < blockDim.x / 32 ? sums[lane] : 0);
    __syncthreads();
    if (warp > 0) v += sums[warp - 1];
    if (i < n) out[i] = v;
}

// Those that are positive, one after the other, in each block: ballots and counts of bits.
extern "C" __global__ void compact_ballot(const int *in, int *out, int *counts, int n) {
    __shared__ int of_warp[8];
    int t = threadIdx.x, i = blockIdx.x * 256 + t, lane = t % 32, warp = t / 32;
    int v = i < n ? in[i] : 0;
    unsigned votes = __ballot_sync(~0u, v > 0);
    if (lane == 0) of_warp[warp] = __popc(votes);
    __syncthreads();
    int before = 0;
    for (int w = 0; w < warp; w++) before += of_warp[w];
    if (v > 0) out[blockIdx.x * 256 + before + __popc(votes & ((1u << lane) - 1))] = v;
    if (t == 255) counts[blockIdx.x] = before + of_warp[7];
}
