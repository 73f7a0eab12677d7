// Histograms: with atomics in global memory, in shared memory, a copy for each warp, and of pairs.

extern "C" __global__ void histogram_global(const unsigned char *in, unsigned *bins, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(bins + in[i], 1u);
}

extern "C" __global__ void histogram_shared(const unsigned *in, unsigned *bins, int n) {
    __shared__ unsigned mine[256];
    mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned four = in[i];
        atomicAdd(mine + (four & 255), 1u);
        atomicAdd(mine + (four >> 8 & 255), 1u);
        atomicAdd(mine + (four >> 16 & 255), 1u);
        atomicAdd(mine + (four >> 24), 1u);
    }
    __syncthreads();
    if (mine[threadIdx.x]) atomicAdd(bins + threadIdx.x, mine[threadIdx.x]);
}

extern "C" __global__ void histogram_warps(const float *in, unsigned *bins, int n, float low, float scale) {
    __shared__ unsigned mine[8][64];
    int t = threadIdx.x;
    for (int k = t; k < 8 * 64; k += 256) mine[k / 64][k % 64] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) {
        int bin = int((in[i] - low) * scale);
        if (bin >= 0 && bin < 64) atomicAdd(&mine[t / 32][bin], 1u);
    }
    __syncthreads();
    if (t < 64) {
        unsigned sum = 0;
        for (int w = 0; w < 8; w++) sum += mine[w][t];
        atomicAdd(bins + t, sum);
    }
}

// Sums by key, in floating point, and the largest of each key.
extern "C" __global__ void group_by(const int *keys, const float *values, float *sums, int *largest, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(sums + keys[i], values[i]);
    atomicMax(largest + keys[i], int(values[i] * 1024.0f));
}

// Sums by key: the lanes of a warp that have one key are found, and one of them adds for all.
extern "C" __global__ void matched_sums(const unsigned char *keys, const int *values, int *sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int key = keys[i] & 31;
    unsigned same = __match_any_sync(__activemask(), key);
    int sum = __reduce_add_sync(same, values[i]);
    if ((threadIdx.x & 31) == __ffs(same) - 1) atomicAdd(sums + key, sum);
}
