// What is looked up at computed places: sparse blocks, hashes, buckets, texels.

// Blocks of 4 by 4, a thread for each row of a block row.
extern "C" __global__ void bsr4(const int *start, const int *column, const float *value, const float *x, float *y, int rows) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= rows * 4) return;
    int b = t / 4, r = t % 4;
    float sum = 0;
    for (int k = start[b]; k < start[b + 1]; k++) {
        const float *v = value + k * 16 + r * 4, *p = x + column[k] * 4;
        sum += v[0] * p[0] + v[1] * p[1] + v[2] * p[2] + v[3] * p[3];
    }
    y[t] = sum;
}

// Linear probing: the value of a key, or -1.
extern "C" __global__ void hash_probe(const unsigned *keys, const int *values, const unsigned *asked, int *found, unsigned mask, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = asked[i], at = (key * 2654435761u >> 7) & mask;
    while (keys[at] != key && keys[at] != 0xffffffffu) at = (at + 1) & mask;
    found[i] = keys[at] == key ? values[at] : -1;
}

// Each key goes to the next place of its bucket.
extern "C" __global__ void bucket_fill(const unsigned *keys, unsigned *places, unsigned *out, int shift, int n) {
    __shared__ unsigned count[256], start[256];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    count[t] = 0;
    __syncthreads();
    unsigned key = i < n ? keys[i] : 0, bucket = key >> shift & 255, mine = 0;
    if (i < n) mine = atomicAdd(&count[bucket], 1);
    __syncthreads();
    start[t] = places[blockIdx.x * 256 + t];
    __syncthreads();
    if (i < n) out[start[bucket] + mine] = bucket;
}

// Bilinear, from bytes, at integer coordinates of 1/256 of a texel.
extern "C" __global__ void bilinear(const unsigned char *image, const int *u, const int *v, unsigned char *out, int w, int h, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = u[i] >> 8, y = v[i] >> 8, fx = u[i] & 255, fy = v[i] & 255;
    int x1 = min(x + 1, w - 1), y1 = min(y + 1, h - 1);
    int a = image[y * w + x], b = image[y * w + x1], c = image[y1 * w + x], d = image[y1 * w + x1];
    int top = a * (256 - fx) + b * fx, low = c * (256 - fx) + d * fx;
    out[i] = (top * (256 - fy) + low * fy + 32768) >> 16;
}
