// A matrix product as CUTLASS's kernels are made: inline PTX in wrappers, TMA multicast in a cluster of two blocks,
// a producer warpgroup with few registers, two consumer warpgroups of wgmma, stmatrix and a TMA store. nvcc -arch=sm_90a
#include <cstdint>
#include <cuda_bf16.h>

struct alignas(64) TensorMap { char opaque[128]; };

namespace {

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ bool elect_one() {
  uint32_t elected, lane;
  asm volatile("{\n.reg .b32 %%rx;\n.reg .pred %%px;\n elect.sync %%rx|%%px, %2;\n@%%px mov.s32 %1, 1;\n mov.s32 %0, %%rx;\n}\n"
               : "=r"(lane), "+r"(elected = 0) : "r"(0xFFFFFFFF));
  return elected;
}

__device__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank) :);
  return rank;
}

__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}

struct Barrier {
  uint64_t state;

  __device__ void init(uint32_t arrivals) {
    asm volatile("{\n mbarrier.init.shared::cta.b64 [%1], %0;\n}" :: "r"(arrivals), "r"(shared_address(this)));
  }
  __device__ void wait(uint32_t parity) {
    asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\n mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n@P1 bra DONE;\n"
                 "bra LAB_WAIT;\nDONE:\n}" :: "r"(shared_address(this)), "r"(parity) : "memory");
  }
  __device__ void expect(uint32_t bytes) {
    asm volatile("{\n mbarrier.arrive.expect_tx.shared::cta.b64 _, [%1], %0;\n}" :: "r"(bytes), "r"(shared_address(this)));
  }
  __device__ void arrive(uint32_t block, uint32_t doit) {
    asm volatile("{\n.reg .pred p;\n.reg .b32 remAddr32;\n setp.eq.u32 p, %2, 1;\n@p mapa.shared::cluster.u32  remAddr32, %0, %1;\n"
                 "@p mbarrier.arrive.shared::cluster.b64  _, [remAddr32];\n}"
                 :: "r"(shared_address(this)), "r"(block), "r"(doit));
  }
};

__device__ void load(const TensorMap* map, Barrier* bar, void* to, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
               " [%0], [%1, {%3, %4}], [%2], %5;"
               :: "r"(shared_address(to)), "l"(map), "r"(shared_address(bar)), "r"(x), "r"(y), "l"(0x1000000000000000ull) : "memory");
}

__device__ void load_multicast(const TensorMap* map, Barrier* bar, void* to, int x, int y, uint16_t mask) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
               " [%0], [%1, {%4, %5}], [%2], %3;"
               :: "r"(shared_address(to)), "l"(map), "r"(shared_address(bar)), "h"(mask), "r"(x), "r"(y) : "memory");
}

__device__ void store(const TensorMap* map, const void* from, int x, int y) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];"
               :: "l"(map), "r"(shared_address(from)), "r"(x), "r"(y) : "memory");
}

__device__ uint64_t descriptor(const void* tile) {
  uint64_t bits = (shared_address(tile) & 0x3FFFF) >> 4;
  return bits | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

__device__ void wgmma(float (&d)[64], uint64_t a, uint64_t b, int scale) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 0;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
        "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
        "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),
        "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
        "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
      : "l"(a), "l"(b), "r"(scale));
}

constexpr int BM = 128, BN = 128, BK = 64, STAGES = 4, CLUSTER = 2;

struct Shared {
  __nv_bfloat16 a[STAGES][BM * BK], b[STAGES][BN * BK], c[2][2][64 * 64];
  Barrier full[STAGES], empty[STAGES];
};

}  // namespace

extern "C" __global__ __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(384, 1)
void multicast_matmul(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                      const __grid_constant__ TensorMap c, int columns, int tiles, int turns) {
  extern __shared__ __align__(1024) uint8_t memory[];
  Shared& s = *reinterpret_cast<Shared*>(memory);
  const int group = __shfl_sync(0xFFFFFFFF, threadIdx.x / 128, 0), warp = __shfl_sync(0xFFFFFFFF, threadIdx.x / 32, 0);
  const uint32_t rank = cluster_rank();
  if (warp == 0 && elect_one()) {
    asm volatile("prefetch.tensormap [%0];" :: "l"(&a) : "memory");
    asm volatile("prefetch.tensormap [%0];" :: "l"(&b) : "memory");
    for (int stage = 0; stage < STAGES; ++stage) {
      s.full[stage].init(1);
      s.empty[stage].init(2 * CLUSTER);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_sync();
  int stage = 0, phase = 0;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" :: "n"(40));
    if (warp == 0 && elect_one()) {
      for (int tile = blockIdx.x / CLUSTER; tile < tiles; tile += gridDim.x / CLUSTER) {
        const int row = (tile / columns * CLUSTER + rank) * BM, column = tile % columns * BN;
        for (int turn = 0; turn < turns; ++turn) {
          s.empty[stage].wait(phase ^ 1);
          s.full[stage].expect((BM + BN) * BK * 2);
          load(&a, &s.full[stage], s.a[stage], turn * BK, row);
          load_multicast(&b, &s.full[stage], s.b[stage] + rank * (BN / CLUSTER) * BK, turn * BK,
                         column + rank * (BN / CLUSTER), (1 << CLUSTER) - 1);
          if (++stage == STAGES) stage = 0, phase ^= 1;
        }
      }
      for (int left = 0; left < STAGES; ++left) {  // so that no block ends while the other one still frees its stages
        s.empty[stage].wait(phase ^ 1);
        if (++stage == STAGES) stage = 0, phase ^= 1;
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" :: "n"(232));
    const int consumer = group - 1, thread = threadIdx.x % 128;
    float d[64];
    for (int tile = blockIdx.x / CLUSTER; tile < tiles; tile += gridDim.x / CLUSTER) {
      const int row = (tile / columns * CLUSTER + rank) * BM, column = tile % columns * BN;
      int before = 0;
      for (int turn = 0; turn < turns; ++turn) {
        s.full[stage].wait(phase);
        for (float& each : d) asm volatile("" : "+f"(each) :: "memory");
        asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
        for (int k = 0; k < BK / 16; ++k)
          wgmma(d, descriptor(s.a[stage] + consumer * 64 * BK) + 2 * k, descriptor(s.b[stage]) + 2 * k, turn | k);
        asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
        for (float& each : d) asm volatile("" : "+f"(each) :: "memory");
        asm volatile("wgmma.wait_group.sync.aligned %0;\n" :: "n"(1) : "memory");
        if (turn > 0) s.empty[before].arrive(thread, thread < CLUSTER);
        before = stage;
        if (++stage == STAGES) stage = 0, phase ^= 1;
      }
      asm volatile("wgmma.wait_group.sync.aligned %0;\n" :: "n"(0) : "memory");
      for (float& each : d) asm volatile("" : "+f"(each) :: "memory");
      s.empty[before].arrive(thread, thread < CLUSTER);
      if (thread == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
      asm volatile("bar.sync %0, %1;" :: "r"(1 + consumer), "n"(128) : "memory");
      for (int half = 0; half < 2; ++half)
        for (int part = 0; part < 4; ++part) {
          uint32_t packed[4];
          for (int pair = 0; pair < 4; ++pair) {
            const int at = half * 32 + part * 8 + pair * 2;
            __nv_bfloat162 both = __floats2bfloat162_rn(d[at], d[at + 1]);
            packed[pair] = reinterpret_cast<uint32_t&>(both);
          }
          const int lane = threadIdx.x % 32, y = thread / 32 * 16 + lane % 16, x = part * 2 + lane / 16;
          const uint32_t to = shared_address(s.c[consumer][half]) + y * 128 + (x ^ y % 8) * 16;
          asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                       :: "r"(to), "r"(packed[0]), "r"(packed[1]), "r"(packed[2]), "r"(packed[3]) : "memory");
        }
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("bar.sync %0, %1;" :: "r"(1 + consumer), "n"(128) : "memory");
      if (thread == 0) {
        for (int half = 0; half < 2; ++half) store(&c, s.c[consumer][half], column + half * 64, row + consumer * 64);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      }
    }
    if (thread == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
