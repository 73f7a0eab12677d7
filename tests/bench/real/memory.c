#include "native.h"

void saxpy_third(const float *restrict x, const float *restrict y, float *restrict z, float a, int n) {
    for (int i = 0; i < n; i++) z[i] = a * x[i] + y[i];
}

void copy_vectors(const int *restrict in, int *restrict out, int n) {
    for (int i = 0; i < 4 * n; i++) out[i] = in[i];
}

void transpose_naive(const float *restrict in, float *restrict out, int w, int h) {
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) out[x * h + y] = in[y * w + x];
}

void transpose_tiled(const float *restrict in, float *restrict out, int w, int h) {
    for (int by = 0; by < h; by += 32)
        for (int bx = 0; bx < w; bx += 32)
            for (int x = bx; x < bx + 32 && x < w; x++)
                for (int y = by; y < by + 32 && y < h; y++) out[x * h + y] = in[y * w + x];
}

void embedding(const float *restrict table, const int *restrict tokens, float *restrict out, int dim, int n) {
    for (int i = 0; i < n; i++) memcpy(out + i * dim, table + (long)tokens[i] * dim, dim * sizeof(float));
}

void gather_add(const float *restrict in, const int *restrict index, float *restrict out, int n) {
    for (int i = 0; i < n; i++) out[i] += in[index[i]];
}

struct Particle { float x, y, z, vx, vy, vz; int kind; float mass; };

void split_structures(const struct Particle *in, float *restrict energy, int *restrict kind, float *restrict position,
                      int n) {
    for (int i = 0; i < n; i++) {
        struct Particle p = in[i];
        energy[i] = 0.5f * p.mass * (p.vx * p.vx + p.vy * p.vy + p.vz * p.vz);
        kind[i] = p.kind;
        position[i] = p.x, position[n + i] = p.y, position[2 * n + i] = p.z;
    }
}
