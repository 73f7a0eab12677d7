// Blocks with odd rows, and trees in shared memory whose strides double: solvers, a scan, a sorting network.
#define PAD(n) ((n) + ((n) >> 5))

// A heat step of doubles in blocks of 20x12.
extern "C" __global__ void heat_20(const double *in, double *out, int w, int h, double k) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    int i = y * w + x;
    out[i] = in[i] + k * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w] - 4 * in[i]);
}

// Gauss elimination with partial pivots of 20 unknowns, a block of 21x8 a system.
extern "C" __global__ void gauss_20(const double *in, double *sol) {
    __shared__ double a[20][21];
    __shared__ int piv;
    int x = threadIdx.x, y = threadIdx.y;
    in += blockIdx.x * 420; sol += blockIdx.x * 20;
    for (int r = y; r < 20; r += 8) a[r][x] = in[r * 21 + x];
    __syncthreads();
    for (int k = 0; k < 20; k++) {
        if (x == 0 && y == 0) {
            int p = k;
            for (int r = k + 1; r < 20; r++) if (fabs(a[r][k]) > fabs(a[p][k])) p = r;
            piv = p;
        }
        __syncthreads();
        int p = piv;
        if (y == 0 && p != k && x >= k) { double v = a[k][x]; a[k][x] = a[p][x]; a[p][x] = v; }
        __syncthreads();
        for (int r = k + 1 + y; r < 20; r += 8) {
            double f = a[r][k] / a[k][k];
            if (x > k) a[r][x] -= f * a[k][x];
        }
        __syncthreads();
    }
    for (int k = 19; k >= 0; k--) {
        if (x == 0 && y == 0) a[k][20] /= a[k][k];
        __syncthreads();
        if (y == 0 && x < k) a[x][20] -= a[x][k] * a[k][20];
        __syncthreads();
    }
    if (y == 0 && x < 20) sol[x] = a[x][20];
}

// Inverses of 12x12 by Gauss and Jordan, a block of 24x12 each.
extern "C" __global__ void inverse_12(const float *in, float *out) {
    __shared__ float a[12][24];
    int x = threadIdx.x, y = threadIdx.y;
    in += blockIdx.x * 144; out += blockIdx.x * 144;
    a[y][x] = x < 12 ? in[y * 12 + x] : (x - 12 == y ? 1.0f : 0.0f);
    __syncthreads();
    for (int k = 0; k < 12; k++) {
        float p = a[k][k], f = a[y][k];
        __syncthreads();
        if (y == k) a[k][x] /= p;
        __syncthreads();
        if (y != k) a[y][x] -= f * a[k][x];
        __syncthreads();
    }
    if (x >= 12) out[y * 12 + x - 12] = a[y][x];
}

// Shortest paths of 40 vertices in shared memory, a block of 40x10 a graph.
extern "C" __global__ void floyd_40(int *d) {
    __shared__ int s[40][40];
    int x = threadIdx.x, y = threadIdx.y;
    d += blockIdx.x * 1600;
    for (int i = y; i < 40; i += 10) s[i][x] = d[i * 40 + x];
    __syncthreads();
    for (int k = 0; k < 40; k++) {
        int v[4];
        for (int i = 0; i < 4; i++) v[i] = min(s[y + 10 * i][x], s[y + 10 * i][k] + s[k][x]);
        __syncthreads();
        for (int i = 0; i < 4; i++) s[y + 10 * i][x] = v[i];
        __syncthreads();
    }
    for (int i = y; i < 40; i += 10) d[i * 40 + x] = s[i][x];
}

// Brent and Kung's scan of 512 by 256 threads, padded against conflicts of banks.
extern "C" __global__ void brent_kung(const int *in, int *out) {
    extern __shared__ int s[];
    int t = threadIdx.x, n = 2 * blockDim.x;
    in += blockIdx.x * n; out += blockIdx.x * n;
    s[PAD(t)] = in[t]; s[PAD(t + n / 2)] = in[t + n / 2];
    for (int d = 1; d < n; d *= 2) { __syncthreads(); int i = (t + 1) * 2 * d - 1; if (i < n) s[PAD(i)] += s[PAD(i - d)]; }
    for (int d = n / 4; d > 0; d /= 2) { __syncthreads(); int i = (t + 1) * 2 * d - 1; if (i + d < n) s[PAD(i + d)] += s[PAD(i)]; }
    __syncthreads();
    out[t] = s[PAD(t)]; out[t + n / 2] = s[PAD(t + n / 2)];
}

// Tridiagonal systems of 128 by cyclic reduction, 64 threads each.
extern "C" __global__ void cyclic_reduction(const float *ga, const float *gb, const float *gc, const float *gd, float *gx) {
    __shared__ float a[128], b[128], c[128], d[128], x[128];
    int t = threadIdx.x, n = 128, half = 64, o = blockIdx.x * 128, iter = 6, stride = 1, active = half;
    a[t] = ga[o + t]; a[t + half] = ga[o + t + half];
    b[t] = gb[o + t]; b[t + half] = gb[o + t + half];
    c[t] = gc[o + t]; c[t + half] = gc[o + t + half];
    d[t] = gd[o + t]; d[t + half] = gd[o + t + half];
    __syncthreads();
    for (int j = 0; j < iter; j++) {
        __syncthreads();
        stride *= 2;
        int delta = stride / 2;
        if (t < active) {
            int i = stride * t + stride - 1;
            int l = i - delta, r = i + delta;
            if (i == n - 1) {
                float k = a[i] / b[l];
                b[i] -= c[l] * k; d[i] -= d[l] * k; a[i] = -a[l] * k; c[i] = 0;
            } else {
                float k1 = a[i] / b[l], k2 = c[i] / b[r];
                b[i] = b[i] - c[l] * k1 - a[r] * k2;
                d[i] = d[i] - d[l] * k1 - d[r] * k2;
                a[i] = -a[l] * k1; c[i] = -c[r] * k2;
            }
        }
        active /= 2;
    }
    __syncthreads();
    if (t < 2) {
        int p = stride - 1, q = 2 * stride - 1;
        float k = b[q] * b[p] - c[p] * a[q];
        x[p] = (b[q] * d[p] - c[p] * d[q]) / k;
        x[q] = (d[q] * b[p] - d[p] * a[q]) / k;
    }
    active = 2;
    for (int j = 0; j < iter; j++) {
        int delta = stride / 2;
        __syncthreads();
        if (t < active) {
            int i = stride * t + stride / 2 - 1;
            if (i == delta - 1) x[i] = (d[i] - c[i] * x[i + delta]) / b[i];
            else x[i] = (d[i] - a[i] * x[i - delta] - c[i] * x[i + delta]) / b[i];
        }
        stride /= 2; active *= 2;
    }
    __syncthreads();
    gx[o + t] = x[t]; gx[o + t + half] = x[t + half];
}

// Batcher's odd-even merge sort of 256 by 128 threads.
extern "C" __global__ void odd_even_merge(const unsigned *in, unsigned *out) {
    __shared__ unsigned s[256];
    int t = threadIdx.x;
    in += blockIdx.x * 256; out += blockIdx.x * 256;
    s[t] = in[t]; s[t + 128] = in[t + 128];
    for (unsigned size = 2; size <= 256; size <<= 1) {
        unsigned stride = size / 2, offset = t & (stride - 1);
        {
            __syncthreads();
            unsigned pos = 2 * t - (t & (stride - 1)), a = s[pos], b = s[pos + stride];
            s[pos] = min(a, b); s[pos + stride] = max(a, b);
            stride >>= 1;
        }
        for (; stride > 0; stride >>= 1) {
            __syncthreads();
            unsigned pos = 2 * t - (t & (stride - 1));
            if (offset >= stride) { unsigned a = s[pos - stride], b = s[pos]; s[pos - stride] = min(a, b); s[pos] = max(a, b); }
        }
    }
    __syncthreads();
    out[t] = s[t]; out[t + 128] = s[t + 128];
}
