// Convolutions with constant filters and halos, and products of bytes by dp4a.
__constant__ float filter[25];
__constant__ int taps[9];

// 5 x 5 on tiles of 16 x 16 outputs, with blocks of 20 x 20 threads that load the halo.
extern "C" __global__ void conv_2d(const float *in, float *out, int w, int h) {
    __shared__ float t[20][20];
    int x = blockIdx.x * 16 + threadIdx.x - 2, y = blockIdx.y * 16 + threadIdx.y - 2;
    t[threadIdx.y][threadIdx.x] = x >= 0 && x < w && y >= 0 && y < h ? in[y * w + x] : 0.0f;
    __syncthreads();
    int i = threadIdx.x - 2, j = threadIdx.y - 2;
    if (i < 0 || j < 0 || i >= 16 || j >= 16 || x >= w || y >= h) return;
    float sum = 0.0f;
    for (int dy = 0; dy < 5; dy++)
        for (int dx = 0; dx < 5; dx++) sum += filter[dy * 5 + dx] * t[j + dy][i + dx];
    out[y * w + x] = sum;
}

// A pass over rows of an image of bytes, edges are repeated, in integers.
extern "C" __global__ void blur_rows(const unsigned char *in, unsigned char *out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= w) return;
    int sum = 128;
    for (int k = -4; k <= 4; k++) sum += taps[k + 4] * in[y * w + min(max(x + k, 0), w - 1)];
    out[y * w + x] = sum >> 8;
}

// Channels first, 3 x 3 without a halo: a thread a pixel of an output channel.
extern "C" __global__ void conv_channels(const float *in, const float *weights, float *out, int channels, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, o = blockIdx.z;
    int ow = w - 2, oh = h - 2;
    if (x >= ow || y >= oh) return;
    float sum = 0.0f;
    for (int c = 0; c < channels; c++) {
        const float *p = in + (c * h + y) * w + x, *f = weights + (o * channels + c) * 9;
        for (int dy = 0; dy < 3; dy++)
            for (int dx = 0; dx < 3; dx++) sum += f[dy * 3 + dx] * p[dy * w + dx];
    }
    out[(o * oh + y) * ow + x] = sum;
}

// A product of matrices of bytes, four at once; scaled at the end.
extern "C" __global__ void gemm_dp4a(const int *a, const int *b, const float *scale, float *c, int n, int words) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || col >= n) return;
    int sum = 0;
    for (int k = 0; k < words; k++) sum = __dp4a(a[row * words + k], b[k * n + col], sum);
    c[row * n + col] = sum * scale[row];
}

// To bytes with a scale for each row: its largest magnitude by shuffles.
extern "C" __global__ void quantise_rows(const float *in, char4 *out, float *scales, int columns) {
    int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32;
    const float4 *mine = reinterpret_cast<const float4 *>(in + row * columns);
    float top = 0.0f;
    for (int j = lane; j < columns / 4; j += 32) {
        float4 v = mine[j];
        top = fmaxf(top, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
    }
    for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
    float scale = 127.0f / top;
    if (lane == 0) scales[row] = top / 127.0f;
    for (int j = lane; j < columns / 4; j += 32) {
        float4 v = mine[j];
        out[row * (columns / 4) + j] = make_char4(__float2int_rn(v.x * scale), __float2int_rn(v.y * scale),
                                                  __float2int_rn(v.z * scale), __float2int_rn(v.w * scale));
    }
}
