#include "native.h"

static inline void product(const float *restrict a, const float *restrict b, float *restrict c, int n) {
    memset(c, 0, sizeof(float) * n * n);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
}

void matmul_naive_16x16(const float *a, const float *b, float *c, int n) { product(a, b, c, n); }
void matmul_naive_8x8(const float *a, const float *b, float *c, int n) { product(a, b, c, n); }
void matmul_naive_4x4(const float *a, const float *b, float *c, int n) { product(a, b, c, n); }
void matmul_naive_1d(const float *a, const float *b, float *c, int n) { product(a, b, c, n); }
void matmul_8x8(const float *a, const float *b, float *c, int n) { product(a, b, c, n); }
void matmul_24(const float *a, const float *b, float *c, int n) { product(a, b, c, n); }
void matmul_48(const float *a, const float *b, float *c, int n) { product(a, b, c, n); }
void matmul_1000(const float *a, const float *b, float *c, int n) { product(a, b, c, n); }

void matvec(const float *restrict a, const float *restrict x, float *restrict y, int n) {
    for (int i = 0; i < n; i++) {
        float sum = 0;
        for (int k = 0; k < n; k++) sum += a[i * n + k] * x[k];
        y[i] = sum;
    }
}
