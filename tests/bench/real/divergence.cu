// Loops that each lane leaves at its own time, and early returns.

extern "C" __global__ void mandelbrot(int *out, int w, int h, float x0, float y0, float step, int limit) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= w || j >= h) return;
    float cx = x0 + i * step, cy = y0 + j * step, x = 0.0f, y = 0.0f;
    int n = 0;
    while (x * x + y * y <= 4.0f && n < limit) {
        float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
        n++;
    }
    out[j * w + i] = n;
}

extern "C" __global__ void gcd_pairs(const unsigned *a, const unsigned *b, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = b[i];
    while (y != 0) {
        unsigned r = x % y;
        x = y;
        y = r;
    }
    out[i] = x;
}

// The first place in a sorted table whose value is not less.
extern "C" __global__ void binary_search(const float *table, int size, const float *keys, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float key = keys[i];
    int low = 0, high = size;
    while (low < high) {
        int middle = (low + high) / 2;
        if (table[middle] < key) low = middle + 1;
        else high = middle;
    }
    out[i] = low;
}

// Most threads return at once, the others for several reasons.
extern "C" __global__ void early_return(const float *x, float *y, int n, float low) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    if (v < low) { y[i] = 0.0f; return; }
    if (v > 2.0f * low) { y[i] = v - low; return; }
    float r = v;
    for (int k = 0; k < 12; k++) {
        float next = 0.5f * (r + v / r);
        if (next == r) break;
        r = next;
    }
    y[i] = r;
}
