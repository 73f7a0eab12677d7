// Thread block clusters: blocks that read and write each other's shared memory.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

// The sum of a row by a cluster of 4 blocks.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_sum(const float *in, float *out, int columns) {
    __shared__ float part[128], of_block[4];
    auto cluster = cg::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank(), row = blockIdx.x / 4;
    float sum = 0.0f;
    for (int j = rank * 128 + t; j < columns; j += 512) sum += in[row * columns + j];
    part[t] = sum;
    for (int d = 64; d > 0; d /= 2) {
        __syncthreads();
        if (t < d) part[t] += part[t + d];
    }
    if (t == 0) cluster.map_shared_rank(of_block, 0)[rank] = part[0];
    cluster.sync();
    if (rank == 0 && t == 0) out[row] = of_block[0] + of_block[1] + of_block[2] + of_block[3];
}

// A histogram with more bins than one block holds: each block of the cluster has half of them.
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_histogram(const int *in, int *bins, int n) {
    __shared__ int mine[512];
    auto cluster = cg::this_cluster();
    for (int b = threadIdx.x; b < 512; b += blockDim.x) mine[b] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int bin = in[i];
        atomicAdd(cluster.map_shared_rank(mine, bin / 512) + bin % 512, 1);
    }
    cluster.sync();
    int *to = bins + cluster.block_rank() * 512;
    for (int b = threadIdx.x; b < 512; b += blockDim.x) atomicAdd(to + b, mine[b]);
}
