#include "native.h"

void bsr4(const int *start, const int *column, const float *value, const float *x, float *y, int rows) {
    for (int b = 0; b < rows; b++)
        for (int r = 0; r < 4; r++) {
            float sum = 0;
            for (int k = start[b]; k < start[b + 1]; k++) {
                const float *v = value + k * 16 + r * 4, *p = x + column[k] * 4;
                sum += v[0] * p[0] + v[1] * p[1] + v[2] * p[2] + v[3] * p[3];
            }
            y[b * 4 + r] = sum;
        }
}

void hash_probe(const u32 *keys, const int *values, const u32 *asked, int *found, u32 mask, int n) {
    for (int i = 0; i < n; i++) {
        u32 key = asked[i], at = (key * 2654435761u >> 7) & mask;
        while (keys[at] != key && keys[at] != ~0u) at = (at + 1) & mask;
        found[i] = keys[at] == key ? values[at] : -1;
    }
}

void bucket_fill(const u32 *keys, u32 *places, u32 *out, int shift, int n) {
    for (int b = 0; b * 256 < n; b++) {
        u32 next[256];
        for (int d = 0; d < 256; d++) next[d] = places[b * 256 + d];
        for (int i = b * 256; i < n && i < b * 256 + 256; i++) out[next[keys[i] >> shift & 255]++] = keys[i] >> shift & 255;
    }
}

void bilinear(const unsigned char *image, const int *u, const int *v, unsigned char *out, int w, int h, int n) {
    for (int i = 0; i < n; i++) {
        int x = u[i] >> 8, y = v[i] >> 8, fx = u[i] & 255, fy = v[i] & 255;
        int x1 = x + 1 < w ? x + 1 : w - 1, y1 = y + 1 < h ? y + 1 : h - 1;
        int a = image[y * w + x], b = image[y * w + x1], c = image[y1 * w + x], d = image[y1 * w + x1];
        int top = a * (256 - fx) + b * fx, low = c * (256 - fx) + d * fx;
        out[i] = (top * (256 - fy) + low * fy + 32768) >> 16;
    }
}
