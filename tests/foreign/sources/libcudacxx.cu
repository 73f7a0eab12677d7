// Asynchronous copies and barriers by libcu++ and cooperative groups: cuda::barrier, cuda::pipeline, cuda::memcpy_async,
// cuda::ptx, clusters. nvcc -arch=sm_90a
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>
#include <cuda/std/utility>

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

// y[i] = sum of x over the 3 neighbours, by tiles that are copied with a barrier.
extern "C" __global__ void barrier_stencil(const float* x, float* y, int n) {
  __shared__ alignas(16) float tile[128 + 8];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier bar;
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  for (int start = blockIdx.x * 128; start < n; start += gridDim.x * 128) {
    const int count = min(136, n + 8 - start);
    cuda::memcpy_async(cg::this_thread_block(), tile, x + start, cuda::aligned_size_t<4>(count * 4), bar);
    bar.arrive_and_wait();
    const int i = start + threadIdx.x;
    if (i < n) y[i] = tile[threadIdx.x] + tile[threadIdx.x + 1] + tile[threadIdx.x + 2];
    __syncthreads();
  }
}

// The same by bulk copies: one thread begins them and says how many bytes the barrier waits for.
extern "C" __global__ void bulk_scale(const float* x, float* y, int n, float factor) {
  __shared__ alignas(128) float tile[1024];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ Barrier bar;
  if (threadIdx.x == 0) {
    init(&bar, blockDim.x);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  const int start = blockIdx.x * 1024, count = min(1024, n - start);
  Barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::memcpy_async_tx(tile, x + start, cuda::aligned_size_t<16>(count * 4), bar);
    token = cuda::device::barrier_arrive_tx(bar, 1, count * 4);
  } else {
    token = bar.arrive();
  }
  bar.wait(cuda::std::move(token));
  for (int i = threadIdx.x; i < count; i += blockDim.x) tile[i] *= factor;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + start, tile, count * 4);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}

// Sums of rows by a pipeline of stages of the block.
extern "C" __global__ void pipeline_sums(const float* x, float* sums, int rows, int columns) {
  constexpr int STAGES = 3, TILE = 256;
  __shared__ alignas(16) float tiles[STAGES][TILE];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    float sum = 0;
    const int turns = (columns + TILE - 1) / TILE;
    for (int turn = 0, ahead = 0; turn < turns; ++turn) {
      for (; ahead < turns && ahead < turn + STAGES; ++ahead) {
        pipe.producer_acquire();
        const int count = min(TILE, columns - ahead * TILE);
        cuda::memcpy_async(block, tiles[ahead % STAGES], x + size_t(row) * columns + ahead * TILE, sizeof(float) * count, pipe);
        pipe.producer_commit();
      }
      pipe.consumer_wait();
      for (int i = threadIdx.x; i < min(TILE, columns - turn * TILE); i += blockDim.x) sum += tiles[turn % STAGES][i];
      block.sync();
      pipe.consumer_release();
    }
    auto warp = cg::tiled_partition<32>(block);
    sum = cg::reduce(warp, sum, cg::plus<float>());
    if (warp.thread_rank() == 0) atomicAdd(sums + row, sum);
  }
}

// Half of the warps produce, half consume.
extern "C" __global__ void split_pipeline(const int* x, int* y, int n) {
  constexpr int STAGES = 2, TILE = 64;
  __shared__ int tiles[STAGES][TILE];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
  auto block = cg::this_thread_block();
  const auto role = threadIdx.x < 64 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = cuda::make_pipeline(block, &state, role);
  for (int turn = 0; turn * TILE < n; ++turn) {
    const int i = turn * TILE + threadIdx.x % 64;
    if (role == cuda::pipeline_role::producer) {
      pipe.producer_acquire();
      if (i < n) cuda::memcpy_async(&tiles[turn % STAGES][threadIdx.x], x + i, sizeof(int), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      if (i < n) y[i] = 3 * tiles[turn % STAGES][TILE - 1 - threadIdx.x % 64 < n - turn * TILE ? TILE - 1 - threadIdx.x % 64 : threadIdx.x % 64];
      pipe.consumer_release();
    }
  }
}

// Blocks of a cluster send each other their sums by st.async, and wait at their own barriers.
extern "C" __global__ void __cluster_dims__(4, 1, 1) cluster_exchange(const int* x, int* y) {
  __shared__ alignas(8) uint64_t bar;
  __shared__ alignas(16) int from[4];
  auto cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 16);
  }
  cluster.sync();
  const int sum = cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), x[blockIdx.x * 32 + threadIdx.x], cg::plus<int>());
  if (threadIdx.x < 4) {
    int* to = cluster.map_shared_rank(from, threadIdx.x);
    uint64_t* there = cluster.map_shared_rank(&bar, threadIdx.x);
    ptx::st_async(to + rank, sum, there);
  }
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {}
  if (threadIdx.x < 4) y[blockIdx.x * 4 + threadIdx.x] = from[threadIdx.x];
  cluster.sync();
}

// The histogram of a cluster, in the shared memory of its blocks.
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_histogram(const int* x, int n, unsigned* bins) {
  __shared__ unsigned mine[32];
  auto cluster = cg::this_cluster();
  if (threadIdx.x < 32) mine[threadIdx.x] = 0;
  cluster.sync();
  for (int i = cluster.thread_rank() + cluster.num_threads() * (blockIdx.x / 2); i < n; i += gridDim.x * blockDim.x) {
    const int bin = x[i] & 63;
    atomicAdd(cluster.map_shared_rank(mine, bin / 32) + bin % 32, 1u);
  }
  cluster.sync();
  if (threadIdx.x < 32) atomicAdd(bins + cluster.block_rank() * 32 + threadIdx.x, mine[threadIdx.x]);
}

// A tile by TMA in the words of cuda::ptx.
struct alignas(64) TensorMap { char opaque[128]; };

extern "C" __global__ void tensor_negate(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out) {
  __shared__ alignas(128) float tile[32][64];
  __shared__ alignas(8) uint64_t bar;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, blockDim.x);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  __syncthreads();
  const int at[2] = {int(blockIdx.x) * 64, int(blockIdx.y) * 32};
  uint64_t token;
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &in, at, &bar);
    token = ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof(tile));
  } else {
    token = ptx::mbarrier_arrive(&bar);
  }
  while (!ptx::mbarrier_try_wait(&bar, token)) {}
  for (int i = threadIdx.x; i < 32 * 64; i += blockDim.x) (&tile[0][0])[i] *= -1;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &out, at, tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}
