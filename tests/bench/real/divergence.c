#include "native.h"

void mandelbrot(int *out, int w, int h, float x0, float y0, float step, int limit) {
    for (int j = 0; j < h; j++)
        for (int i = 0; i < w; i++) {
            float cx = x0 + i * step, cy = y0 + j * step, x = 0, y = 0;
            int n = 0;
            while (x * x + y * y <= 4.0f && n < limit) {
                float next = x * x - y * y + cx;
                y = 2.0f * x * y + cy;
                x = next;
                n++;
            }
            out[j * w + i] = n;
        }
}

void gcd_pairs(const u32 *a, const u32 *b, u32 *out, int n) {
    for (int i = 0; i < n; i++) {
        u32 x = a[i], y = b[i];
        while (y != 0) {
            u32 r = x % y;
            x = y;
            y = r;
        }
        out[i] = x;
    }
}

void binary_search(const float *table, int size, const float *keys, int *out, int n) {
    for (int i = 0; i < n; i++) {
        int low = 0, high = size;
        while (low < high) {
            int middle = (low + high) / 2;
            if (table[middle] < keys[i]) low = middle + 1;
            else high = middle;
        }
        out[i] = low;
    }
}

void early_return(const float *x, float *y, int n, float low) {
    for (int i = 0; i < n; i++) {
        float v = x[i];
        if (v < low) { y[i] = 0; continue; }
        if (v > 2 * low) { y[i] = v - low; continue; }
        float r = v;
        for (int k = 0; k < 12; k++) {
            float next = 0.5f * (r + v / r);
            if (next == r) break;
            r = next;
        }
        y[i] = r;
    }
}
