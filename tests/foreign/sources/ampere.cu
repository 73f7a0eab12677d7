// Matrix products as they were made for sm_80: a ring of cp.async, ldmatrix and mma.sync in inline PTX, and the API of
// wmma. nvcc -arch=sm_80
#include <cstdint>
#include <cuda_fp16.h>
#include <mma.h>

namespace {

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

template <int N> __device__ void wait_group() { asm volatile("cp.async.wait_group %0;\n" :: "n"(N)); }

__device__ void copy16(void* to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n"
               :: "r"(shared_address(to)), "l"(__cvta_generic_to_global(from)), "r"(inside ? 16 : 0));
}

constexpr int BM = 64, BN = 64, BK = 32, STAGES = 3;

__device__ int place(int row, int part) { return row * BK + (part ^ (row >> 1 & 3)) * 8; }

}  // namespace

// c = a @ b.T, a (m, k), b (n, k) with k a multiple of 8; blocks of 128 threads.
extern "C" __global__ void __launch_bounds__(128) pipelined_matmul(
    const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  __shared__ __align__(128) __half left[STAGES][BM * BK], right[STAGES][BN * BK];
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  const int row0 = blockIdx.y * BM, column0 = blockIdx.x * BN, turns = (k + BK - 1) / BK;
  auto load = [&](int turn) {
    for (int i = thread; i < BM * BK / 8; i += 128) {
      const int row = i / 4, part = i % 4, at = turn * BK + part * 8;
      const bool in = at < k && turn < turns;
      copy16(left[turn % STAGES] + place(row, part), a + size_t(min(row0 + row, m - 1)) * k + (in ? at : 0),
             in && row0 + row < m);
      copy16(right[turn % STAGES] + place(row, part), b + size_t(min(column0 + row, n - 1)) * k + (in ? at : 0),
             in && column0 + row < n);
    }
    asm volatile("cp.async.commit_group;\n" ::);
  };
  for (int turn = 0; turn < STAGES - 1; ++turn) load(turn);
  float d[2][4][4] = {};
  const int wm = warp / 2 * 32, wn = warp % 2 * 32;
  for (int turn = 0; turn < turns; ++turn) {
    wait_group<STAGES - 2>();
    __syncthreads();
    load(turn + STAGES - 1);
    const __half *x = left[turn % STAGES], *y = right[turn % STAGES];
    for (int step = 0; step < BK / 16; ++step) {
      uint32_t fa[2][4], fb[4][2];
      for (int i = 0; i < 2; ++i)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                     : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3])
                     : "r"(shared_address(x + place(wm + i * 16 + lane % 16, step * 2 + lane / 16))));
      for (int j = 0; j < 4; j += 2)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                     : "=r"(fb[j][0]), "=r"(fb[j][1]), "=r"(fb[j + 1][0]), "=r"(fb[j + 1][1])
                     : "r"(shared_address(y + place(wn + j * 8 + lane / 16 * 8 + lane % 8, step * 2 + lane / 8 % 2))));
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                       "{%0, %1, %2, %3};\n"
                       : "+f"(d[i][j][0]), "+f"(d[i][j][1]), "+f"(d[i][j][2]), "+f"(d[i][j][3])
                       : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[j][0]), "r"(fb[j][1]));
    }
  }
  wait_group<0>();
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int e = 0; e < 4; ++e) {
        const int row = row0 + wm + i * 16 + lane / 4 + e / 2 * 8, column = column0 + wn + j * 8 + lane % 4 * 2 + e % 2;
        if (row < m && column < n) c[size_t(row) * n + column] = d[i][j][e];
      }
}

// c = a @ b + c, all sizes multiples of 16; a warp makes a tile of 16 x 16.
extern "C" __global__ void wmma_matmul(const __half* a, const __half* b, float* c, int m, int n, int k) {
  using namespace nvcuda;
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, columns = n / 16;
  if (warp >= m / 16 * columns) return;
  const int row = warp / columns * 16, column = warp % columns * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> d;
  wmma::load_matrix_sync(d, c + row * n + column, n, wmma::mem_row_major);
  for (int at = 0; at < k; at += 16) {
    wmma::load_matrix_sync(x, a + row * k + at, k);
    wmma::load_matrix_sync(y, b + at * n + column, n);
    wmma::mma_sync(d, x, y, d);
  }
  for (int i = 0; i < d.num_elements; ++i) d.x[i] *= 0.5f;
  wmma::store_matrix_sync(c + row * n + column, d, n, wmma::mem_row_major);
}
