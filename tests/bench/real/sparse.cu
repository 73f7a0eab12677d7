// Sparse matrices times a vector, and steps over graphs.

extern "C" __global__ void csr_scalar(const int *start, const int *column, const float *value, const float *x, float *y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = start[row]; k < start[row + 1]; k++) sum += value[k] * x[column[k]];
    y[row] = sum;
}

extern "C" __global__ void csr_vector(const int *start, const int *column, const float *value, const float *x, float *y, int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = start[row] + lane; k < start[row + 1]; k += 32) sum += value[k] * x[column[k]];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    if (lane == 0) y[row] = sum;
}

// Rows padded to one length, stored by columns; -1 where there is nothing.
extern "C" __global__ void ell(const int *column, const double *value, const double *x, double *y, int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double sum = 0.0;
    for (int k = 0; k < width; k++) {
        int j = column[k * rows + row];
        if (j >= 0) sum += value[k * rows + row] * x[j];
    }
    y[row] = sum;
}

// A step of a search in breadth: the neighbours of the vertices at this distance that were not seen are next.
extern "C" __global__ void bfs_step(const int *start, const int *to, const int *before, int *after, int *changed, int n, int now) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || before[v] != now) return;
    for (int k = start[v]; k < start[v + 1]; k++)
        if (before[to[k]] < 0) {
            after[to[k]] = now + 1;
            *changed = 1;
        }
}

// A step of shortest paths: every edge is relaxed by an atomic minimum.
extern "C" __global__ void relax_edges(const int *from, const int *to, const unsigned *cost, const unsigned *before, unsigned *after, int edges) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges) return;
    unsigned d = before[from[e]];
    if (d != ~0u) atomicMin(after + to[e], d + cost[e]);
}

extern "C" __global__ void pagerank(const int *start, const int *source, const int *degree, const float *before, float *after, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    float sum = 0.0f;
    for (int k = start[v]; k < start[v + 1]; k++) sum += before[source[k]] / degree[source[k]];
    after[v] = 0.15f / n + 0.85f * sum;
}
