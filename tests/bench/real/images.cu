// Images and fields: the inverse DCT of JPEG, a step of shallow water.

__device__ void idct8(int *v, int s) {
    int z2 = v[2 * s], z3 = v[6 * s], z1 = (z2 + z3) * 4433, t2 = z1 + z3 * -15137, t3 = z1 + z2 * 6270;
    z2 = v[0]; z3 = v[4 * s];
    int t0 = (z2 + z3) << 13, t1 = (z2 - z3) << 13, t10 = t0 + t3, t13 = t0 - t3, t11 = t1 + t2, t12 = t1 - t2;
    t0 = v[7 * s]; t1 = v[5 * s]; t2 = v[3 * s]; t3 = v[1 * s];
    z1 = t0 + t3; z2 = t1 + t2; z3 = t0 + t2; int z4 = t1 + t3, z5 = (z3 + z4) * 9633;
    t0 *= 2446; t1 *= 16819; t2 *= 25172; t3 *= 12299; z1 *= -7373; z2 *= -20995;
    z3 = z3 * -16069 + z5; z4 = z4 * -3196 + z5;
    t0 += z1 + z3; t1 += z2 + z4; t2 += z2 + z3; t3 += z1 + z4;
    v[0] = (t10 + t3) >> 13; v[7 * s] = (t10 - t3) >> 13; v[s] = (t11 + t2) >> 13; v[6 * s] = (t11 - t2) >> 13;
    v[2 * s] = (t12 + t1) >> 13; v[5 * s] = (t12 - t1) >> 13; v[3 * s] = (t13 + t0) >> 13; v[4 * s] = (t13 - t0) >> 13;
}

extern "C" __global__ void jpeg_idct(const short *coef, const unsigned short *quant, unsigned char *out, int blocks,
                                     int stride) {
    __shared__ int s[8][8][9];
    int x = threadIdx.x, b = threadIdx.y, blk = blockIdx.x * 8 + b;
    bool live = blk < blocks;
    if (live) for (int r = 0; r < 8; r++) s[b][r][x] = coef[blk * 64 + r * 8 + x] * quant[r * 8 + x];
    __syncthreads();
    if (live) idct8(&s[b][0][x], 9);
    __syncthreads();
    if (live) idct8(&s[b][x][0], 1);
    __syncthreads();
    if (live) for (int r = 0; r < 8; r++) {
        int v = (s[b][r][x] >> 3) + 128;
        out[r * stride + blk * 8 + x] = v < 0 ? 0 : v > 255 ? 255 : v;
    }
}

// A step of shallow water; at the boundary indices are clamped. Blocks are 33x3.
extern "C" __global__ void shallow(const float *h, const float *u, const float *v, float *h2, float *u2, float *v2,
                                   int nx, int ny, float dt) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    int l = max(x - 1, 0), r = min(x + 1, nx - 1), d = max(y - 1, 0), t = min(y + 1, ny - 1), i = y * nx + x;
    float hx = (h[y * nx + r] - h[y * nx + l]) * 0.5f, hy = (h[t * nx + x] - h[d * nx + x]) * 0.5f;
    float ux = (u[y * nx + r] - u[y * nx + l]) * 0.5f, vy = (v[t * nx + x] - v[d * nx + x]) * 0.5f;
    u2[i] = u[i] - dt * 9.81f * hx;
    v2[i] = v[i] - dt * 9.81f * hy;
    h2[i] = h[i] - dt * (h[i] * (ux + vy) + u[i] * hx + v[i] * hy);
}
