#include "native.h"

void numba_saxpy(float a, const float *restrict x, const float *restrict y, float *restrict out, int n) {
    for (int i = 0; i < n; i++) out[i] = a * x[i] + y[i];
}

void numba_matmul(const float *restrict a, const float *restrict b, float *restrict c, int m, int k, int n) {
    memset(c, 0, sizeof(float) * m * n);
    for (int i = 0; i < m; i++)
        for (int l = 0; l < k; l++)
            for (int j = 0; j < n; j++) c[i * n + j] += a[i * k + l] * b[l * n + j];
}

void numba_mandelbrot(double low_x, double low_y, double step, i64 limit, int *out, int w, int h) {
    for (int j = 0; j < h; j++)
        for (int i = 0; i < w; i++) {
            double cx = low_x + i * step, cy = low_y + j * step, x = 0, y = 0;
            int n = 0;
            while (n < limit && x * x + y * y <= 4) {
                double next = x * x - y * y + cx;
                y = 2 * x * y + cy;
                x = next;
                n++;
            }
            out[j * w + i] = n;
        }
}

void numba_sum(const double *x, double *out, int n) {
    double total = 0;
    for (int i = 0; i < n; i++) total += x[i];
    *out += total;
}

void numba_stencil(const float *restrict x, float *restrict out, int w, int h) {
    for (int i = 1; i < h - 1; i++)
        for (int j = 1; j < w - 1; j++) {
            const float *p = x + i * w + j;
            out[i * w + j] = 0.25 * (p[-w] + p[w] + p[-1] + p[1]);
        }
}

void numba_histogram(const float *x, float low, float high, int *bins, int n, int count) {
    float width = (high - low) / count;
    for (int i = 0; i < n; i++) {
        int number = (int)((x[i] - low) / width);
        if (number >= 0 && number < count) bins[number]++;
    }
}

void numba_median(const int *restrict x, int *restrict out, int w, int h) {
    for (int i = 1; i < h - 1; i++)
        for (int j = 1; j < w - 1; j++) {
            int v[9];
            for (int k = 0; k < 9; k++) v[k] = x[(i + k / 3 - 1) * w + j + k % 3 - 1];
            for (int k = 1; k < 9; k++) {
                int value = v[k], at = k;
                while (at > 0 && v[at - 1] > value) {
                    v[at] = v[at - 1];
                    at--;
                }
                v[at] = value;
            }
            out[i * w + j] = v[4];
        }
}

void numba_collatz(int *out, int n) {
    for (i64 i = 0; i < n; i++) {
        i64 value = i + 1;
        int count = 0;
        while (value != 1) {
            value = value % 2 == 0 ? value / 2 : 3 * value + 1;
            count++;
        }
        out[i] = count;
    }
}
