// Data that goes from one to another: by flags, through the shared memory of a cluster, by ballots and shuffles.
#include <cooperative_groups.h>
#include <cuda/atomic>
namespace cg = cooperative_groups;

// A prefix sum in one pass that looks back: a block adds up the sums before it until one is known from the start on.
extern "C" __global__ void look_back(const int *in, int *out, int *sums, int *totals, int *states, int n, int epoch) {
    __shared__ int warps[8], before;
    int t = threadIdx.x, b = blockIdx.x, lane = t % 32, i = b * 256 + t, v = i < n ? in[i] : 0;
    for (int d = 1; d < 32; d *= 2) { int o = __shfl_up_sync(~0u, v, d); if (lane >= d) v += o; }
    if (lane == 31) warps[t / 32] = v;
    __syncthreads();
    for (int w = 0; w < t / 32; w++) v += warps[w];
    if (t == 255) {
        cuda::atomic_ref<int, cuda::thread_scope_device> mine(states[b]);
        int from = 0;
        sums[b] = v;
        mine.store(epoch, cuda::memory_order_release);
        for (int p = b - 1; p >= 0; p--) {
            cuda::atomic_ref<int, cuda::thread_scope_device> state(states[p]);
            int s;
            while ((s = state.load(cuda::memory_order_acquire)) < epoch) {}
            if (s == epoch + 1) { from += totals[p]; break; }
            from += sums[p];
        }
        totals[b] = from + v;
        mine.store(epoch + 1, cuda::memory_order_release);
        before = from;
    }
    __syncthreads();
    if (i < n) out[i] = v + before;
}

// One warp fetches tiles into two buffers, three sum them: full and empty flags, by release and acquire.
extern "C" __global__ void two_buffers(const float *in, float *out, int tiles) {
    __shared__ float tile[2][96];
    __shared__ int full[2], empty[2];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x < 2) full[threadIdx.x] = empty[threadIdx.x] = 0;
    __syncthreads();
    in += blockIdx.x * tiles * 96;
    float sum = 0.0f;
    for (int k = 0; k < tiles; k++) {
        cuda::atomic_ref<int, cuda::thread_scope_block> filled(full[k % 2]), read(empty[k % 2]);
        if (warp == 0) {
            if (lane == 0) while (read.load(cuda::memory_order_acquire) < k / 2 * 3) {}
            __syncwarp();
            for (int j = lane; j < 96; j += 32) tile[k % 2][j] = in[k * 96 + j];
            __syncwarp();
            if (lane == 0) filled.store(k / 2 + 1, cuda::memory_order_release);
        } else {
            if (lane == 0) while (filled.load(cuda::memory_order_acquire) <= k / 2) {}
            __syncwarp();
            sum += tile[k % 2][(warp - 1) * 32 + lane];
            __syncwarp();
            if (lane == 0) read.fetch_add(1, cuda::memory_order_release);
        }
    }
    if (warp > 0) out[blockIdx.x * 96 + threadIdx.x - 32] = sum;
}

// A row of blocks in a chain: each waits for the one before it, with its edge in global memory.
extern "C" __global__ void chain_of_blocks(const int *in, int *edge, int *flags, int *out, int steps, int epoch) {
    int t = threadIdx.x, b = blockIdx.x, v = in[b * 64 + t];
    if (b > 0) {
        if (t == 0) {
            cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[b - 1]);
            while (flag.load(cuda::memory_order_acquire) != epoch) {}
        }
        __syncthreads();
        v += edge[(b - 1) * 64 + t];
    }
    for (int k = 0; k < steps; k++) v = v * 5 + 1;
    edge[b * 64 + t] = v;
    __syncthreads();
    if (t == 0) {
        cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[b]);
        flag.store(epoch, cuda::memory_order_release);
    }
    out[b * 64 + t] = v;
}

// The largest of a row and where it is, by a cluster of 8 blocks: each gives its own to the first.
extern "C" __global__ void __cluster_dims__(8, 1, 1) cluster_argmax(const float *in, float *best, int *where, int columns) {
    __shared__ float value[128], of_block[8];
    __shared__ int place[128], at_block[8];
    auto cluster = cg::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank(), row = blockIdx.x / 8, at = -1;
    float most = -1e30f;
    for (int j = rank * 128 + t; j < columns; j += 1024)
        if (in[row * columns + j] > most) most = in[row * columns + j], at = j;
    value[t] = most, place[t] = at;
    for (int d = 64; d > 0; d /= 2) {
        __syncthreads();
        if (t < d && (value[t + d] > value[t] || (value[t + d] == value[t] && place[t + d] < place[t])))
            value[t] = value[t + d], place[t] = place[t + d];
    }
    if (t == 0) {
        cluster.map_shared_rank(of_block, 0)[rank] = value[0];
        cluster.map_shared_rank(at_block, 0)[rank] = place[0];
    }
    cluster.sync();
    if (rank == 0 && t == 0) {
        int b = 0;
        for (int k = 1; k < 8; k++) if (of_block[k] > of_block[b]) b = k;
        best[row] = of_block[b], where[row] = at_block[b];
    }
}

// Steps of a stencil in shared memory, whose edges the neighbours in the cluster read.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_halo(const float *in, float *out, int steps) {
    __shared__ float two[2][128];
    auto cluster = cg::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank(), i = blockIdx.x * 128 + t, from = 0;
    two[0][t] = in[i];
    for (int k = 0; k < steps; k++) {
        cluster.sync();
        float left = t > 0 ? two[from][t - 1] : rank > 0 ? cluster.map_shared_rank(two[from], rank - 1)[127] : 0.0f;
        float right = t < 127 ? two[from][t + 1] : rank < 3 ? cluster.map_shared_rank(two[from], rank + 1)[0] : 0.0f;
        two[1 - from][t] = 0.25f * left + 0.5f * two[from][t] + 0.25f * right;
        from = 1 - from;
    }
    cluster.sync();
    out[i] = two[from][t];
}

// The words of a table that lies over the blocks of a cluster, by indices from memory.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_lookup(const int *table, const int *index, int *out, int n) {
    __shared__ int mine[256];
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank();
    mine[threadIdx.x] = table[rank * 256 + threadIdx.x];
    cluster.sync();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        unsigned k = index[i];
        out[i] = cluster.map_shared_rank(mine, k / 256)[k % 256];
    }
    cluster.sync();
}

// Sums of segments whose heads are marked, in each warp, by shuffles; each segment's last lane adds its sum.
extern "C" __global__ void segmented_sum(const int *in, const unsigned char *head, const int *id, int *sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    int v = i < n ? in[i] : 0;
    unsigned heads = __ballot_sync(~0u, lane == 0 || i == n || (i < n && head[i]));
    int start = 31 - __clz(heads & (~0u >> (31 - lane)));
    for (int d = 1; d < 32; d *= 2) { int o = __shfl_up_sync(~0u, v, d); if (lane - d >= start) v += o; }
    bool last = lane == 31 || (heads >> (lane + 1) & 1);
    if (i < n && last) atomicAdd(sums + id[i], v);
}

// Those below a pivot to the left, the others to the right, in order, in each block.
extern "C" __global__ void partition_ballot(const int *in, int *out, int *lefts, int pivot, int n) {
    __shared__ int below[8];
    int t = threadIdx.x, lane = t % 32, warp = t / 32, i = blockIdx.x * 256 + t, v = i < n ? in[i] : 0;
    bool here = i < n, left = here && v < pivot;
    unsigned votes = __ballot_sync(~0u, left);
    if (lane == 0) below[warp] = __popc(votes);
    __syncthreads();
    int before = 0, all = 0;
    for (int w = 0; w < 8; w++) { if (w < warp) before += below[w]; all += below[w]; }
    before += __popc(votes & ((1u << lane) - 1));
    if (here) out[blockIdx.x * 256 + (left ? before : all + t - before)] = v;
    if (t == 0) lefts[blockIdx.x] = all;
}
