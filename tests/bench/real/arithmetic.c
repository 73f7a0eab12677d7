#include "native.h"
#include <fenv.h>
#pragma STDC FENV_ACCESS ON

// One direction of rounding: the other bounds are those of the negated factors.
void intervals(const double *a, const double *b, double *out, int n) {
    int before = fegetround();
    fesetround(FE_UPWARD);
    for (int i = 0; i < n; i++) {
        double al = a[2 * i], ah = a[2 * i + 1], bl = b[2 * i], bh = b[2 * i + 1];
        double low = fmax(fmax(-al * bl, -al * bh), fmax(-ah * bl, -ah * bh));
        double high = fmax(fmax(al * bl, al * bh), fmax(ah * bl, ah * bh));
        out[2 * i] = -(low - al);
        out[2 * i + 1] = high + ah;
    }
    fesetround(before);
}

void heat_double(const double *in, double *out, int steps, double r, int blocks) {
    double t[2][256];
    for (int b = 0; b < blocks; b++, in += 256, out += 256) {
        int from = 0;
        memcpy(t[0], in, sizeof t[0]);
        memcpy(t[1], in, sizeof t[0]);
        for (int s = 0; s < steps; s++) {
            for (int x = 1; x < 255; x++)
                t[1 - from][x] = t[from][x] + r * (t[from][x - 1] - 2 * t[from][x] + t[from][x + 1]);
            from = 1 - from;
        }
        memcpy(out, t[from], sizeof t[0]);
    }
}

void kahan_sum(const double *in, double *out, int chunk, int n) {
    for (int i = 0; i * chunk < n; i++) {
        double sum = 0, lost = 0;
        for (int k = i * chunk; k < n && k < (i + 1) * chunk; k++) {
            double v = in[k] - lost, next = sum + v;
            lost = (next - sum) - v;
            sum = next;
        }
        out[i] = sum;
    }
}

void modular_power(const u64 *base, const u32 *exponent, u64 *out, u64 p, int n) {
    for (int i = 0; i < n; i++) {
        u64 x = base[i] % p, y = 1;
        for (u32 e = exponent[i]; e; e >>= 1) {
            if (e & 1) y = y * x % p;
            x = x * x % p;
        }
        out[i] = y;
    }
}

void hash64(const u64 *in, u64 *out, int rounds, int n) {
    for (int i = 0; i < n; i++) {
        u64 v = in[i];
        for (int k = 0; k < rounds; k++) {
            v ^= v >> 32;
            unsigned __int128 p = (unsigned __int128)v * 0x9E3779B97F4A7C15ull;
            v = (u64)p ^ (u64)(p >> 64) ^ (v << 23 | v >> 41);
        }
        out[i] = v;
    }
}

void axpy_half2(const _Float16 *restrict x, const _Float16 *restrict y, _Float16 *restrict out, float a, int n) {
    float scale = (_Float16)a;
    for (int i = 0; i < 2 * n; i++) out[i] = (_Float16)(scale * (float)x[i] + (float)y[i]);
}

void bf16_scale(const u16 *restrict x, const float *restrict scale, u16 *restrict out, int columns, int rows) {
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < columns; j++) {
            u32 bits = (u32)x[r * columns + j] << 16;
            float v;
            memcpy(&v, &bits, 4);
            v *= scale[r];
            memcpy(&bits, &v, 4);
            out[r * columns + j] = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
        }
}

void wmma_half(const _Float16 *restrict a, const _Float16 *restrict b, float *restrict c, int n) {
    float *wide = malloc(sizeof(float) * n * n);
    for (int i = 0; i < n * n; i++) wide[i] = b[i];
    memset(c, 0, sizeof(float) * n * n);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            float left = a[i * n + k];
            for (int j = 0; j < n; j++) c[i * n + j] += left * wide[k * n + j];
        }
    free(wide);
}
