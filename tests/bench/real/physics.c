#include "native.h"

void nbody(const float *bodies, float *forces, int n, float softening) {
    for (int i = 0; i < n; i++) {
        const float *me = bodies + 4 * i;
        float ax = 0, ay = 0, az = 0;
        for (int j = 0; j < n; j++) {
            const float *other = bodies + 4 * j;
            float dx = other[0] - me[0], dy = other[1] - me[1], dz = other[2] - me[2];
            float r = 1 / sqrtf(dx * dx + dy * dy + dz * dz + softening);
            float s = other[3] * r * r * r;
            ax += dx * s, ay += dy * s, az += dz * s;
        }
        forces[4 * i] = ax, forces[4 * i + 1] = ay, forces[4 * i + 2] = az, forces[4 * i + 3] = 0;
    }
}

static u32 reversed(u32 x) {
    u32 y = 0;
    for (int k = 0; k < 8; k++) y |= (x >> k & 1) << (7 - k);
    return y;
}

void fft_radix2(const float *in, float *out, const float *twiddle, int blocks) {
    for (int block = 0; block < blocks; block++, in += 512, out += 512) {
        for (int t = 0; t < 256; t++) {
            out[2 * reversed(t)] = in[2 * t];
            out[2 * reversed(t) + 1] = in[2 * t + 1];
        }
        for (int half = 1; half < 256; half *= 2)
            for (int t = 0; t < 128; t++) {
                int k = t & (half - 1), a = 2 * t - k, b = a + half;
                const float *w = twiddle + 2 * k * (128 / half);
                float *x = out + 2 * a, *y = out + 2 * b;
                float re = y[0] * w[0] - y[1] * w[1], im = y[0] * w[1] + y[1] * w[0];
                y[0] = x[0] - re, y[1] = x[1] - im;
                x[0] += re, x[1] += im;
            }
    }
}

void monte_carlo_pi(u64 *inside, u32 seed, int steps, int threads) {
    u64 count = 0;
    for (int i = 0; i < threads; i++)
        for (int s = 0; s < steps; s++) {
            u32 c[4] = {i, s, 0, 0}, key[2] = {seed, 0};
            for (int round = 0; round < 10; round++) {
                u64 p0 = (u64)0xD2511F53u * c[0], p1 = (u64)0xCD9E8D57u * c[2];
                u32 c0 = (p1 >> 32) ^ c[1] ^ key[0], c2 = (p0 >> 32) ^ c[3] ^ key[1];
                c[0] = c0, c[1] = p1, c[2] = c2, c[3] = p0;
                key[0] += 0x9E3779B9u, key[1] += 0xBB67AE85u;
            }
            u64 x = c[0] >> 1, y = c[1] >> 1, z = c[2] >> 1, w = c[3] >> 1;
            count += (x * x + y * y) >> 62 == 0;
            count += (z * z + w * w) >> 62 == 0;
        }
    *inside += count;
}

static float normal_cdf(float x) { return 0.5f * erfcf(-x * 0.70710678f); }

void black_scholes(const float *price, const float *strike, const float *years, float *call, float *put, float rate,
                   float sigma, int n) {
    for (int i = 0; i < n; i++) {
        float s = price[i], k = strike[i], t = years[i], root = sqrtf(t);
        float d1 = (logf(s / k) + (rate + 0.5f * sigma * sigma) * t) / (sigma * root), d2 = d1 - sigma * root;
        float discounted = k * expf(-rate * t), c = s * normal_cdf(d1) - discounted * normal_cdf(d2);
        call[i] = c;
        put[i] = c + discounted - s;
    }
}

void rotations(const float *angle, float *points, int n) {
    for (int i = 0; i < n; i++) {
        float s = sinf(angle[i]), c = cosf(angle[i]);
        const float *p = points + 2 * (n + i);
        points[2 * i] = c * p[0] - s * p[1];
        points[2 * i + 1] = s * p[0] + c * p[1];
    }
}
