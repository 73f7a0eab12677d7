#include "native.h"
#define RADIUS 4

void stencil_1d(const float *restrict in, float *restrict out, const float *restrict w, int n) {
    for (int i = 0; i < n; i++) {
        float sum = 0;
        for (int k = -RADIUS; k <= RADIUS; k++) {
            int at = i + k;
            if (at >= 0 && at < n) sum += w[k + RADIUS] * in[at];
        }
        out[i] = sum;
    }
}

static inline float at(const float *in, int x, int y, int w, int h) {
    return x >= 0 && x < w && y >= 0 && y < h ? in[y * w + x] : 0;
}

void stencil_2d(const float *restrict in, float *restrict out, int w, int h, float centre, float side, float corner) {
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            float sides = at(in, x - 1, y, w, h) + at(in, x + 1, y, w, h) + at(in, x, y - 1, w, h) + at(in, x, y + 1, w, h);
            float corners = at(in, x - 1, y - 1, w, h) + at(in, x + 1, y - 1, w, h) + at(in, x - 1, y + 1, w, h)
                + at(in, x + 1, y + 1, w, h);
            out[y * w + x] = centre * in[y * w + x] + side * sides + corner * corners;
        }
}

void stencil_3d(const float *restrict in, float *restrict out, int nx, int ny, int nz, float a, float b) {
    int plane = nx * ny;
    for (int z = 1; z < nz - 1; z++)
        for (int y = 1; y < ny - 1; y++)
            for (int x = 1; x < nx - 1; x++) {
                const float *p = in + z * plane + y * nx + x;
                out[p - in] = a * p[0] + b * (p[-plane] + p[plane] + p[-1] + p[1] + p[-nx] + p[nx]);
            }
}

void jacobi_shuffle(const float *restrict in, float *restrict out, int w, int h) {
    for (int y = 1; y < h - 1; y++)
        for (int x = 1; x < w - 1; x++) {
            const float *p = in + y * w + x;
            out[y * w + x] = 0.25f * (p[-1] + p[1] + p[-w] + p[w]);
        }
}
