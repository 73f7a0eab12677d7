// Products of matrices, one thread an element: without shared memory, and by tiles of any shape.

extern "C" __global__ void matmul_naive(const float *a, const float *b, float *c, int n) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || col >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

template <int H, int W, int K> __device__ void tiled(const float *a, const float *b, float *c, int n) {
    __shared__ float at[H][K], bt[K][W];
    int tx = threadIdx.x, ty = threadIdx.y, t = ty * W + tx;
    int row = blockIdx.y * H + ty, col = blockIdx.x * W + tx;
    float sum = 0.0f;
    for (int k0 = 0; k0 < n; k0 += K) {
        for (int i = t; i < H * K; i += H * W) {
            int r = blockIdx.y * H + i / K, k = k0 + i % K;
            at[i / K][i % K] = r < n && k < n ? a[r * n + k] : 0.0f;
        }
        for (int i = t; i < K * W; i += H * W) {
            int k = k0 + i / W, q = blockIdx.x * W + i % W;
            bt[i / W][i % W] = k < n && q < n ? b[k * n + q] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < K; k++) sum += at[ty][k] * bt[k][tx];
        __syncthreads();
    }
    if (row < n && col < n) c[row * n + col] = sum;
}

extern "C" __global__ void matmul_8x8(const float *a, const float *b, float *c, int n) { tiled<8, 8, 8>(a, b, c, n); }
extern "C" __global__ void matmul_24(const float *a, const float *b, float *c, int n) { tiled<4, 6, 12>(a, b, c, n); }
extern "C" __global__ void matmul_48(const float *a, const float *b, float *c, int n) { tiled<6, 8, 16>(a, b, c, n); }
extern "C" __global__ void matmul_1000(const float *a, const float *b, float *c, int n) { tiled<25, 40, 20>(a, b, c, n); }

// A matrix times a vector: a block a row.
extern "C" __global__ void matvec(const float *a, const float *x, float *y, int n) {
    __shared__ float partial[128];
    float sum = 0.0f;
    for (int k = threadIdx.x; k < n; k += 128) sum += a[blockIdx.x * n + k] * x[k];
    partial[threadIdx.x] = sum;
    for (int d = 64; d > 0; d /= 2) {
        __syncthreads();
        if (threadIdx.x < d) partial[threadIdx.x] += partial[threadIdx.x + d];
    }
    if (threadIdx.x == 0) y[blockIdx.x] = partial[0];
}
