// The kernels of matrices.py as one writes them in CUDA C++.

// Halves are numbers of 16 bits here: what is in cuda_fp16.h needs a further library.

typedef unsigned short half;

__device__ float wide(half v) {
    float w;
    asm("cvt.f32.f16 %0, %1;" : "=f"(w) : "h"(v));
    return w;
}

extern "C" __global__ void matmul_naive(
    int n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c
) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n || col >= n) return;
    float acc = 0.0f;
    for (int k = 0; k < n; k++) acc += a[row * n + k] * b[k * n + col];
    c[row * n + col] = acc;
}

extern "C" __global__ void matmul_tiled(
    int n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c
) {
    __shared__ float at[16][16], bt[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float acc = 0.0f;
    for (int k = 0; k < n; k += 16) {
        at[ty][tx] = a[row * n + k + tx];
        bt[ty][tx] = b[(k + ty) * n + col];
        __syncthreads();
        for (int kk = 0; kk < 16; kk++) acc += at[ty][kk] * bt[kk][tx];
        __syncthreads();
    }
    c[row * n + col] = acc;
}

extern "C" __global__ void matmul_blocked(
    int n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c
) {
    __shared__ float at[16][64], bt[16][64];
    int t = threadIdx.x, tx = t % 16, ty = t / 16, row = blockIdx.y * 64, col = blockIdx.x * 64;
    float acc[4][4] = {};
    for (int k = 0; k < n; k += 16) {
        float4 part = *(const float4*)&a[(row + t / 4) * n + k + t % 4 * 4];
        at[t % 4 * 4][t / 4] = part.x;
        at[t % 4 * 4 + 1][t / 4] = part.y;
        at[t % 4 * 4 + 2][t / 4] = part.z;
        at[t % 4 * 4 + 3][t / 4] = part.w;
        *(float4*)&bt[t / 16][t % 16 * 4] = *(const float4*)&b[(k + t / 16) * n + col + t % 16 * 4];
        __syncthreads();
        for (int kk = 0; kk < 16; kk++) {
            float4 left = *(float4*)&at[kk][ty * 4], right = *(float4*)&bt[kk][tx * 4];
            float l[4] = {left.x, left.y, left.z, left.w}, r[4] = {right.x, right.y, right.z, right.w};
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) acc[i][j] += l[i] * r[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        *(float4*)&c[(row + ty * 4 + i) * n + col + tx * 4] = make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}

extern "C" __global__ void matmul_mma(
    int n, const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ c
) {
    // A warp 16 rows by 8 columns; b has its columns as rows.
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, pair = lane % 4 * 2;
    int row = blockIdx.y * 16 + group, col = (blockIdx.x * 4 + warp) * 8;
    float acc[4] = {};
    for (int k = 0; k < n; k += 16) {
        unsigned a0 = *(const unsigned*)&a[row * n + k + pair], a1 = *(const unsigned*)&a[(row + 8) * n + k + pair];
        unsigned a2 = *(const unsigned*)&a[row * n + k + pair + 8];
        unsigned a3 = *(const unsigned*)&a[(row + 8) * n + k + pair + 8];
        unsigned b0 = *(const unsigned*)&b[(col + group) * n + k + pair];
        unsigned b1 = *(const unsigned*)&b[(col + group) * n + k + pair + 8];
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
    *(float2*)&c[row * n + col + pair] = make_float2(acc[0], acc[1]);
    *(float2*)&c[(row + 8) * n + col + pair] = make_float2(acc[2], acc[3]);
}

extern "C" __global__ void transpose(int rows, int cols, const float* __restrict__ x, float* __restrict__ y) {
    __shared__ float tile[32][33];
    int tx = threadIdx.x, ty = threadIdx.y, col = blockIdx.x * 32, row = blockIdx.y * 32;
    for (int j = 0; j < 32; j += 8)
        if (row + ty + j < rows && col + tx < cols) tile[ty + j][tx] = x[(row + ty + j) * cols + col + tx];
    __syncthreads();
    for (int j = 0; j < 32; j += 8)
        if (col + ty + j < cols && row + tx < rows) y[(col + ty + j) * rows + row + tx] = tile[tx][ty + j];
}

extern "C" __global__ void gemv(
    int rows, int cols, const float* __restrict__ a, const float* __restrict__ x, float* __restrict__ y
) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float acc = 0.0f;
    for (int i = threadIdx.x * 4; i < cols; i += 128) {
        float4 u = *(const float4*)&a[(size_t)row * cols + i], v = *(const float4*)&x[i];
        acc += u.x * v.x;
        acc += u.y * v.y;
        acc += u.z * v.z;
        acc += u.w * v.w;
    }
    for (int offset = 16; offset; offset /= 2) acc += __shfl_xor_sync(0xffffffff, acc, offset);
    if (threadIdx.x == 0) y[row] = acc;
}

extern "C" __global__ void gemv_q4k(
    int rows, int blocks, const unsigned* __restrict__ w, const float* __restrict__ x, float* __restrict__ y
) {
    // A warp a row; of each super-block of 36 words a lane takes the word 4 + lane: 8 weights in two sub-blocks.
    int lane = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    int group = lane / 8, low = group * 2;
    float acc = 0.0f;
    for (int block = 0; block < blocks; block++) {
        const unsigned* super = w + ((size_t)row * blocks + block) * 36;
        unsigned quants = super[4 + lane];
        ushort2 d = *(const ushort2*)super;
        const unsigned char* packed = (const unsigned char*)super + 4;
        unsigned s0, s1, m0, m1;
        if (low < 4) {
            s0 = packed[low] & 63, m0 = packed[low + 4] & 63;
            s1 = packed[low + 1] & 63, m1 = packed[low + 5] & 63;
        } else {
            s0 = (packed[low + 4] & 15) | (packed[low - 4] >> 6) << 4;
            m0 = (packed[low + 4] >> 4) | (packed[low] >> 6) << 4;
            s1 = (packed[low + 5] & 15) | (packed[low - 3] >> 6) << 4;
            m1 = (packed[low + 5] >> 4) | (packed[low + 1] >> 6) << 4;
        }
        const float* part = x + block * 256 + group * 64 + lane % 8 * 4;
        float4 u = *(const float4*)part, v = *(const float4*)(part + 32);
        float q0 = (quants & 15) * u.x, q1 = (quants >> 4 & 15) * v.x;
        q0 += (quants >> 8 & 15) * u.y, q1 += (quants >> 12 & 15) * v.y;
        q0 += (quants >> 16 & 15) * u.z, q1 += (quants >> 20 & 15) * v.z;
        q0 += (quants >> 24 & 15) * u.w, q1 += (quants >> 28) * v.w;
        float t0 = u.x + u.y + u.z + u.w, t1 = v.x + v.y + v.z + v.w;
        acc += wide(d.x) * (s0 * q0 + s1 * q1) - wide(d.y) * (m0 * t0 + m1 * t1);
    }
    for (int offset = 16; offset; offset /= 2) acc += __shfl_xor_sync(0xffffffff, acc, offset);
    if (lane == 0) y[row] = acc;
}
