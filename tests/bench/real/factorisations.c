#include "native.h"

void lud_perimeter(float *m, int dim, int off, int blocks) {
    const float *d = m + off * dim + off;
    for (int b = 1; b <= blocks; b++) {
        float *row = m + off * dim + off + b * 16, *column = m + (off + b * 16) * dim + off;
        for (int i = 1; i < 16; i++)
            for (int j = 0; j < i; j++)
                for (int x = 0; x < 16; x++) row[i * dim + x] -= d[i * dim + j] * row[j * dim + x];
        for (int x = 0; x < 16; x++, column += dim)
            for (int i = 0; i < 16; i++) {
                float v = column[i];
                for (int j = 0; j < i; j++) v -= column[j] * d[j * dim + i];
                column[i] = v / d[i * dim + i];
            }
    }
}

void cholesky_24(const double *in, double *out, int blocks) {
    for (int b = 0; b < blocks; b++, in += 576, out += 576) {
        double a[24][24];
        memcpy(a, in, sizeof a);
        for (int k = 0; k < 24; k++) {
            a[k][k] = sqrt(a[k][k]);
            for (int x = k + 1; x < 24; x++) a[x][k] /= a[k][k];
            for (int i = k + 1; i < 24; i++)
                for (int x = k + 1; x <= i; x++) a[i][x] -= a[i][k] * a[x][k];
        }
        for (int i = 0; i < 24; i++)
            for (int x = 0; x < 24; x++) out[i * 24 + x] = x <= i ? a[i][x] : 0.0;
    }
}

void thomas(const float *a, const float *b, const float *c, const float *d, float *x, float *cp, int n, int systems) {
    for (int s = 0; s < systems; s++) cp[s] = c[s] / b[s], x[s] = d[s] / b[s];
    for (int i = 1; i < n; i++)
        for (int k = i * systems; k < (i + 1) * systems; k++) {
            float w = 1.0f / (b[k] - cp[k - systems] * a[k]);
            x[k] = (d[k] - x[k - systems] * a[k]) * w;
            cp[k] = c[k] * w;
        }
    for (int k = (n - 1) * systems - 1; k >= 0; k--) x[k] -= cp[k] * x[k + systems];
}

void jacobi_eigen4(const float *in, float *out, int n) {
    for (int i = 0; i < n; i++) {
        float A[4][4];
        memcpy(A, in + i * 16, sizeof A);
        for (int sweep = 0; sweep < 6; sweep++)
            for (int p = 0; p < 3; p++)
                for (int q = p + 1; q < 4; q++) {
                    if (fabsf(A[p][q]) < 1e-20f) continue;
                    float th = (A[q][q] - A[p][p]) / (2 * A[p][q]);
                    float t = (th >= 0 ? 1.0f : -1.0f) / (fabsf(th) + sqrtf(th * th + 1));
                    float c = 1 / sqrtf(t * t + 1), s = t * c;
                    for (int k = 0; k < 4; k++) {
                        float x = A[k][p], y = A[k][q];
                        A[k][p] = c * x - s * y, A[k][q] = s * x + c * y;
                    }
                    for (int k = 0; k < 4; k++) {
                        float x = A[p][k], y = A[q][k];
                        A[p][k] = c * x - s * y, A[q][k] = s * x + c * y;
                    }
                }
        for (int k = 0; k < 4; k++) out[i * 4 + k] = A[k][k];
    }
}
