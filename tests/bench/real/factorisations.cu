// Factorisations and eigenvalues: small matrices a block or a thread each, tridiagonal systems.
extern "C" __global__ void lud_perimeter(float *m, int dim, int off) {
    __shared__ float dia[16][16], row[16][16], col[16][16];
    int tx = threadIdx.x, idx, base;
    if (tx < 16) {
        idx = tx; base = off * dim + off;
        for (int i = 0; i < 8; i++) { dia[i][idx] = m[base + idx]; base += dim; }
        base = off * dim + off;
        for (int i = 0; i < 16; i++) { row[i][idx] = m[base + (blockIdx.x + 1) * 16 + idx]; base += dim; }
    } else {
        idx = tx - 16; base = (off + 8) * dim + off;
        for (int i = 8; i < 16; i++) { dia[i][idx] = m[base + idx]; base += dim; }
        base = (off + (blockIdx.x + 1) * 16) * dim + off;
        for (int i = 0; i < 16; i++) { col[i][idx] = m[base + idx]; base += dim; }
    }
    __syncthreads();
    if (tx < 16) {
        idx = tx;
        for (int i = 1; i < 16; i++) for (int j = 0; j < i; j++) row[i][idx] -= dia[i][j] * row[j][idx];
    } else {
        idx = tx - 16;
        for (int i = 0; i < 16; i++) {
            for (int j = 0; j < i; j++) col[idx][i] -= col[idx][j] * dia[j][i];
            col[idx][i] /= dia[i][i];
        }
    }
    __syncthreads();
    if (tx < 16) {
        base = (off + 1) * dim + off;
        for (int i = 1; i < 16; i++) { m[base + (blockIdx.x + 1) * 16 + tx] = row[i][tx]; base += dim; }
    } else {
        base = (off + (blockIdx.x + 1) * 16) * dim + off;
        for (int i = 0; i < 16; i++) { m[base + tx - 16] = col[i][tx - 16]; base += dim; }
    }
}

// 24x24 matrices, a block of 24x7 threads each.
extern "C" __global__ void cholesky_24(const double *in, double *out) {
    __shared__ double a[24][25];
    int x = threadIdx.x, y = threadIdx.y;
    in += blockIdx.x * 576; out += blockIdx.x * 576;
    for (int i = y; i < 24; i += 7) a[i][x] = in[i * 24 + x];
    __syncthreads();
    for (int k = 0; k < 24; k++) {
        if (x == 0 && y == 0) a[k][k] = sqrt(a[k][k]);
        __syncthreads();
        if (y == 0 && x > k) a[x][k] /= a[k][k];
        __syncthreads();
        for (int i = k + 1 + y; i < 24; i += 7) if (x > k && x <= i) a[i][x] -= a[i][k] * a[x][k];
        __syncthreads();
    }
    for (int i = y; i < 24; i += 7) out[i * 24 + x] = x <= i ? a[i][x] : 0.0;
}

// Tridiagonal systems, one a thread, interleaved.
extern "C" __global__ void thomas(const float *a, const float *b, const float *c, const float *d, float *x,
                                  float *cp, int n, int systems) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= systems) return;
    float pc = c[s] / b[s], pd = d[s] / b[s];
    cp[s] = pc; x[s] = pd;
    for (int i = 1; i < n; i++) {
        int k = i * systems + s;
        float w = 1.0f / (b[k] - pc * a[k]);
        pd = (d[k] - pd * a[k]) * w;
        pc = c[k] * w;
        cp[k] = pc; x[k] = pd;
    }
    for (int i = n - 2; i >= 0; i--) { int k = i * systems + s; pd = x[k] - cp[k] * pd; x[k] = pd; }
}

// Eigenvalues of symmetric 4x4 matrices by turns of Jacobi, in local arrays.
extern "C" __global__ void jacobi_eigen4(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float A[4][4];
    for (int r = 0; r < 4; r++) for (int c = 0; c < 4; c++) A[r][c] = in[i * 16 + r * 4 + c];
    for (int sweep = 0; sweep < 6; sweep++)
        for (int p = 0; p < 3; p++)
#pragma unroll 1
            for (int q = p + 1; q < 4; q++) {
                if (fabsf(A[p][q]) < 1e-20f) continue;
                float th = (A[q][q] - A[p][p]) / (2 * A[p][q]);
                float t = (th >= 0 ? 1.f : -1.f) / (fabsf(th) + sqrtf(th * th + 1));
                float c = 1 / sqrtf(t * t + 1), s = t * c;
                for (int k = 0; k < 4; k++) {
                    float x = A[k][p], y = A[k][q];
                    A[k][p] = c * x - s * y; A[k][q] = s * x + c * y;
                }
                for (int k = 0; k < 4; k++) {
                    float x = A[p][k], y = A[q][k];
                    A[p][k] = c * x - s * y; A[q][k] = s * x + c * y;
                }
            }
    for (int k = 0; k < 4; k++) out[i * 4 + k] = A[k][k];
}
