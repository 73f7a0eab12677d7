#include "native.h"

void heat_20(const double *in, double *out, int w, int h, double k) {
    for (int y = 1; y < h - 1; y++)
        for (int x = 1; x < w - 1; x++) {
            int i = y * w + x;
            out[i] = in[i] + k * (in[i - 1] + in[i + 1] + in[i - w] + in[i + w] - 4 * in[i]);
        }
}

void gauss_20(const double *in, double *solution, int systems) {
    for (int b = 0; b < systems; b++, in += 420, solution += 20) {
        double a[20][21];
        memcpy(a, in, sizeof a);
        for (int k = 0; k < 20; k++) {
            int p = k;
            for (int r = k + 1; r < 20; r++) if (fabs(a[r][k]) > fabs(a[p][k])) p = r;
            for (int x = k; p != k && x < 21; x++) { double v = a[k][x]; a[k][x] = a[p][x]; a[p][x] = v; }
            for (int r = k + 1; r < 20; r++) {
                double f = a[r][k] / a[k][k];
                for (int x = k + 1; x < 21; x++) a[r][x] -= f * a[k][x];
            }
        }
        for (int k = 19; k >= 0; k--) {
            solution[k] = a[k][20] / a[k][k];
            for (int r = 0; r < k; r++) a[r][20] -= a[r][k] * solution[k];
        }
    }
}

void inverse_12(const float *in, float *out, int blocks) {
    for (int b = 0; b < blocks; b++, in += 144, out += 144) {
        float a[12][24];
        for (int y = 0; y < 12; y++) for (int x = 0; x < 24; x++) a[y][x] = x < 12 ? in[y * 12 + x] : x - 12 == y;
        for (int k = 0; k < 12; k++) {
            float p = a[k][k];
            for (int x = 0; x < 24; x++) a[k][x] /= p;
            for (int y = 0; y < 12; y++) {
                float f = a[y][k];
                if (y != k) for (int x = 0; x < 24; x++) a[y][x] -= f * a[k][x];
            }
        }
        for (int y = 0; y < 12; y++) for (int x = 0; x < 12; x++) out[y * 12 + x] = a[y][x + 12];
    }
}

void floyd_40(int *d, int graphs) {
    for (int b = 0; b < graphs; b++, d += 1600)
        for (int k = 0; k < 40; k++)
            for (int i = 0; i < 40; i++)
                for (int j = 0; j < 40; j++) {
                    int v = d[i * 40 + k] + d[k * 40 + j];
                    if (v < d[i * 40 + j]) d[i * 40 + j] = v;
                }
}

void brent_kung(const int *in, int *out, int blocks) {
    for (int b = 0; b < blocks; b++)
        for (int i = 0, sum = 0; i < 512; i++) out[b * 512 + i] = sum += in[b * 512 + i];
}

void cyclic_reduction(const float *a, const float *b, const float *c, const float *d, float *x, int systems) {
    for (int s = 0; s < systems; s++, a += 128, b += 128, c += 128, d += 128, x += 128) {
        float cp[128], dp[128];
        cp[0] = c[0] / b[0], dp[0] = d[0] / b[0];
        for (int i = 1; i < 128; i++) {
            float w = 1 / (b[i] - cp[i - 1] * a[i]);
            cp[i] = c[i] * w, dp[i] = (d[i] - dp[i - 1] * a[i]) * w;
        }
        x[127] = dp[127];
        for (int i = 126; i >= 0; i--) x[i] = dp[i] - cp[i] * x[i + 1];
    }
}

void odd_even_merge(const u32 *in, u32 *out, int blocks) {
    for (int b = 0; b < blocks; b++, in += 256, out += 256) {
        memcpy(out, in, 1024);
        for (int size = 2; size <= 256; size *= 2)
            for (int stride = size / 2; stride > 0; stride /= 2)
                for (int t = 0; t < 128; t++) {
                    int whole = stride == size / 2, at = 2 * t - (t & (stride - 1)) - (whole ? 0 : stride);
                    if (!whole && (t & (size / 2 - 1)) < stride) continue;
                    u32 p = out[at], q = out[at + stride];
                    out[at] = p < q ? p : q, out[at + stride] = p < q ? q : p;
                }
    }
}
