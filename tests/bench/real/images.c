#include "native.h"

static void idct8(int *v, int s) {
    int z2 = v[2 * s], z3 = v[6 * s], z1 = (z2 + z3) * 4433, t2 = z1 + z3 * -15137, t3 = z1 + z2 * 6270;
    z2 = v[0], z3 = v[4 * s];
    int t0 = (z2 + z3) << 13, t1 = (z2 - z3) << 13, t10 = t0 + t3, t13 = t0 - t3, t11 = t1 + t2, t12 = t1 - t2;
    t0 = v[7 * s], t1 = v[5 * s], t2 = v[3 * s], t3 = v[s];
    z1 = t0 + t3, z2 = t1 + t2, z3 = t0 + t2;
    int z4 = t1 + t3, z5 = (z3 + z4) * 9633;
    t0 *= 2446, t1 *= 16819, t2 *= 25172, t3 *= 12299, z1 *= -7373, z2 *= -20995;
    z3 = z3 * -16069 + z5, z4 = z4 * -3196 + z5;
    t0 += z1 + z3, t1 += z2 + z4, t2 += z2 + z3, t3 += z1 + z4;
    v[0] = (t10 + t3) >> 13, v[7 * s] = (t10 - t3) >> 13, v[s] = (t11 + t2) >> 13, v[6 * s] = (t11 - t2) >> 13;
    v[2 * s] = (t12 + t1) >> 13, v[5 * s] = (t12 - t1) >> 13, v[3 * s] = (t13 + t0) >> 13, v[4 * s] = (t13 - t0) >> 13;
}

void jpeg_idct(const int16_t *coef, const u16 *quant, u8 *out, int blocks, int stride) {
    for (int b = 0; b < blocks; b++) {
        int s[64];
        for (int i = 0; i < 64; i++) s[i] = coef[b * 64 + i] * quant[i];
        for (int x = 0; x < 8; x++) idct8(s + x, 8);
        for (int x = 0; x < 8; x++) idct8(s + 8 * x, 1);
        for (int i = 0; i < 64; i++) {
            int v = (s[i] >> 3) + 128;
            out[i / 8 * stride + b * 8 + i % 8] = v < 0 ? 0 : v > 255 ? 255 : v;
        }
    }
}

void shallow(const float *h, const float *u, const float *v, float *h2, float *u2, float *v2, int nx, int ny,
             float dt) {
    for (int y = 0; y < ny; y++)
        for (int x = 0; x < nx; x++) {
            int i = y * nx + x, l = i - (x > 0), r = i + (x < nx - 1), d = i - nx * (y > 0), t = i + nx * (y < ny - 1);
            float hx = (h[r] - h[l]) * 0.5f, hy = (h[t] - h[d]) * 0.5f;
            float ux = (u[r] - u[l]) * 0.5f, vy = (v[t] - v[d]) * 0.5f;
            u2[i] = u[i] - dt * 9.81f * hx;
            v2[i] = v[i] - dt * 9.81f * hy;
            h2[i] = h[i] - dt * (h[i] * (ux + vy) + u[i] * hx + v[i] * hy);
        }
}
