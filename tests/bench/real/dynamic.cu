// Tables whose entries depend on others: along diagonals, by pivots, in rounds.

// A tile of 32 x 32 of Needleman and Wunsch's table, along its diagonals, by one warp; tiles of one diagonal at a time.
extern "C" __global__ void needleman_wunsch(const int *score, int *table, int n, int diagonal, int gap) {
    __shared__ int t[33][33];
    int tx = threadIdx.x, tiles = n / 32, width = n + 1;
    int bx = diagonal < tiles ? blockIdx.x : diagonal - tiles + 1 + blockIdx.x, by = diagonal - bx;
    int *corner = table + by * 32 * width + bx * 32;
    if (tx == 0) t[0][0] = corner[0];
    t[0][tx + 1] = corner[tx + 1];
    t[tx + 1][0] = corner[(tx + 1) * width];
    __syncwarp();
    for (int d = 0; d < 63; d++) {
        int x = tx, y = d - tx;
        if (y >= 0 && y < 32) {
            int diagonal_value = t[y][x] + score[(by * 32 + y) * n + bx * 32 + x];
            t[y + 1][x + 1] = max(diagonal_value, max(t[y][x + 1], t[y + 1][x]) - gap);
        }
        __syncwarp();
    }
    for (int y = 0; y < 32; y++) corner[(y + 1) * width + tx + 1] = t[y + 1][tx + 1];
}

extern "C" __global__ void floyd_warshall(const int *before, int *after, int n, int k) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || j >= n) return;
    after[i * n + j] = min(before[i * n + j], before[i * n + k] + before[k * n + j]);
}

// The cheapest way down a grid, a block for all of it: a row after the other, in two rows of shared memory.
extern "C" __global__ void path_grid(const int *cost, int *out, int w, int h) {
    extern __shared__ int rows[];
    int *now = rows, *next = rows + w;
    const int *mine = cost + blockIdx.x * w * h;
    for (int x = threadIdx.x; x < w; x += blockDim.x) now[x] = mine[x];
    __syncthreads();
    for (int y = 1; y < h; y++) {
        for (int x = threadIdx.x; x < w; x += blockDim.x) {
            int best = now[x];
            if (x > 0) best = min(best, now[x - 1]);
            if (x < w - 1) best = min(best, now[x + 1]);
            next[x] = best + mine[y * w + x];
        }
        __syncthreads();
        int *swap = now;
        now = next, next = swap;
    }
    for (int x = threadIdx.x; x < w; x += blockDim.x) out[blockIdx.x * w + x] = now[x];
}

// Conway's game on a torus, a byte a cell.
extern "C" __global__ void life(const unsigned char *in, unsigned char *out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int left = (x + w - 1) % w, right = (x + 1) % w, up = (y + h - 1) % h, down = (y + 1) % h;
    int n = in[up * w + left] + in[up * w + x] + in[up * w + right] + in[y * w + left] + in[y * w + right]
        + in[down * w + left] + in[down * w + x] + in[down * w + right];
    out[y * w + x] = n == 3 || (n == 2 && in[y * w + x]);
}
