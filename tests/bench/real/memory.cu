// What moves data: copies, transposes, gathers, a sum into a third array.

extern "C" __global__ void saxpy_third(const float *x, const float *y, float *z, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] + y[i];
}

extern "C" __global__ void copy_vectors(const int4 *in, int4 *out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i];
}

extern "C" __global__ void transpose_naive(const float *in, float *out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) out[x * h + y] = in[y * w + x];
}

// Tiles of 32 x 32 by 32 x 8 threads, a column more in shared memory.
extern "C" __global__ void transpose_tiled(const float *in, float *out, int w, int h) {
    __shared__ float t[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (x < w && y + k < h) t[threadIdx.y + k][threadIdx.x] = in[(y + k) * w + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (x < h && y + k < w) out[(y + k) * h + x] = t[threadIdx.x][threadIdx.y + k];
}

// Rows of a table by their numbers.
extern "C" __global__ void embedding(const float *table, const int *tokens, float *out, int dim) {
    const float *row = table + (long)tokens[blockIdx.x] * dim;
    for (int j = threadIdx.x; j < dim; j += blockDim.x) out[blockIdx.x * dim + j] = row[j];
}

extern "C" __global__ void gather_add(const float *in, const int *index, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] += in[index[i]];
}

// From an array of structures to a structure of arrays.
struct Particle { float x, y, z, vx, vy, vz; int kind; float mass; };
extern "C" __global__ void split_structures(const Particle *in, float *energy, int *kind, float *position, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle p = in[i];
    energy[i] = 0.5f * p.mass * (p.vx * p.vx + p.vy * p.vy + p.vz * p.vz);
    kind[i] = p.kind;
    position[i] = p.x, position[n + i] = p.y, position[2 * n + i] = p.z;
}
