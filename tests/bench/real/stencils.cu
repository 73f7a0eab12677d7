// Stencils: with a halo in shared memory, marching along an axis, and with shuffles for the neighbours in a row.
#define RADIUS 4

extern "C" __global__ void stencil_1d(const float *in, float *out, const float *w, int n) {
    __shared__ float tile[256 + 2 * RADIUS];
    int g = blockIdx.x * blockDim.x + threadIdx.x, l = threadIdx.x + RADIUS;
    tile[l] = g < n ? in[g] : 0.0f;
    if (threadIdx.x < RADIUS) {
        tile[l - RADIUS] = g >= RADIUS ? in[g - RADIUS] : 0.0f;
        tile[l + 256] = g + 256 < n ? in[g + 256] : 0.0f;
    }
    __syncthreads();
    float sum = 0.0f;
    for (int k = -RADIUS; k <= RADIUS; k++) sum += w[k + RADIUS] * tile[l + k];
    if (g < n) out[g] = sum;
}

// 3 x 3 neighbours; blocks of 16 x 16 load 18 x 18.
extern "C" __global__ void stencil_2d(const float *in, float *out, int w, int h, float centre, float side, float corner) {
    __shared__ float t[18][18];
    int x0 = blockIdx.x * 16 - 1, y0 = blockIdx.y * 16 - 1;
    for (int k = threadIdx.y * 16 + threadIdx.x; k < 18 * 18; k += 256) {
        int x = x0 + k % 18, y = y0 + k / 18;
        t[k / 18][k % 18] = x >= 0 && x < w && y >= 0 && y < h ? in[y * w + x] : 0.0f;
    }
    __syncthreads();
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x >= w || y >= h) return;
    int i = threadIdx.x + 1, j = threadIdx.y + 1;
    float sides = t[j][i - 1] + t[j][i + 1] + t[j - 1][i] + t[j + 1][i];
    float corners = t[j - 1][i - 1] + t[j - 1][i + 1] + t[j + 1][i - 1] + t[j + 1][i + 1];
    out[y * w + x] = centre * t[j][i] + side * sides + corner * corners;
}

// 7 points, a column of threads marches along z and keeps three planes in registers.
extern "C" __global__ void stencil_3d(const float *in, float *out, int nx, int ny, int nz, float a, float b) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x == 0 || y == 0 || x >= nx - 1 || y >= ny - 1) return;
    int plane = nx * ny, at = y * nx + x + plane;
    float below = in[at - plane], here = in[at], above;
    for (int z = 1; z < nz - 1; z++) {
        above = in[at + plane];
        out[at] = a * here + b * (below + above + in[at - 1] + in[at + 1] + in[at - nx] + in[at + nx]);
        below = here, here = above;
        at += plane;
    }
}

// A Jacobi step: a warp takes 32 columns and stores 30, its lanes have their neighbours by shuffles.
extern "C" __global__ void jacobi_shuffle(const float *in, float *out, int w, int h) {
    int x = blockIdx.x * 30 + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    if (y >= h - 1) return;
    int c = x < w ? x : w - 1;
    float here = in[y * w + c];
    float left = __shfl_up_sync(~0u, here, 1), right = __shfl_down_sync(~0u, here, 1);
    if (threadIdx.x == 0 || threadIdx.x == 31 || x >= w - 1) return;
    out[y * w + x] = 0.25f * (left + right + in[(y - 1) * w + x] + in[(y + 1) * w + x]);
}
