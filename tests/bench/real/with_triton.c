#include "native.h"

void triton_add_relu(const float *restrict x, const float *restrict y, float *restrict out, int n) {
    for (int i = 0; i < n; i++) out[i] = x[i] + y[i] > 0 ? x[i] + y[i] : 0;
}

void triton_softmax(const float *restrict in, float *restrict out, int columns, int rows) {
    for (int r = 0; r < rows; r++, in += columns, out += columns) {
        float top = -INFINITY, sum = 0;
        for (int j = 0; j < columns; j++) top = fmaxf(top, in[j]);
        for (int j = 0; j < columns; j++) sum += out[j] = expf(in[j] - top);
        for (int j = 0; j < columns; j++) out[j] /= sum;
    }
}

void triton_layer_norm(const float *restrict in, const float *restrict weight, const float *restrict bias,
                       float *restrict out, int columns, float eps, int rows) {
    for (int r = 0; r < rows; r++, in += columns, out += columns) {
        float sum = 0, squares = 0;
        for (int j = 0; j < columns; j++) sum += in[j];
        float mean = sum / columns;
        for (int j = 0; j < columns; j++) squares += (in[j] - mean) * (in[j] - mean);
        float scale = 1 / sqrtf(squares / columns + eps);
        for (int j = 0; j < columns; j++) out[j] = (in[j] - mean) * scale * weight[j] + bias[j];
    }
}

void triton_matmul(const _Float16 *restrict a, const _Float16 *restrict b, float *restrict c, int m, int n, int k) {
    float *wide = malloc(sizeof(float) * k * n);
    for (int i = 0; i < k * n; i++) wide[i] = b[i];
    memset(c, 0, sizeof(float) * m * n);
    for (int i = 0; i < m; i++)
        for (int l = 0; l < k; l++) {
            float left = a[i * k + l];
            for (int j = 0; j < n; j++) c[i * n + j] += left * wide[l * n + j];
        }
    free(wide);
}

void triton_matmul_f32(const float *restrict a, const float *restrict b, float *restrict c, int n) {
    memset(c, 0, sizeof(float) * n * n);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
}

void triton_attention(const _Float16 *restrict q, const _Float16 *restrict k, const _Float16 *restrict v,
                      float *restrict out, int keys, float scale, int queries) {
    float *scores = malloc((keys + 2 * keys * 64) * sizeof(float)), *kk = scores + keys, *vv = kk + keys * 64;
    for (int i = 0; i < keys * 64; i++) kk[i] = k[i], vv[i] = v[i];
    for (int i = 0; i < queries; i++) {
        float top = -INFINITY, total = 0, mine[64];
        for (int d = 0; d < 64; d++) mine[d] = q[i * 64 + d];
        for (int j = 0; j < keys; j++) {
            float dot = 0;
            for (int d = 0; d < 64; d++) dot += mine[d] * kk[j * 64 + d];
            scores[j] = dot * scale;
            top = fmaxf(top, scores[j]);
        }
        for (int j = 0; j < keys; j++) total += scores[j] = expf(scores[j] - top);
        memset(out + i * 64, 0, 64 * sizeof(float));
        for (int j = 0; j < keys; j++)
            for (int d = 0; d < 64; d++) out[i * 64 + d] += scores[j] / total * vv[j * 64 + d];
    }
    free(scores);
}

void triton_dropout(const float *restrict x, float *restrict out, int n, float p, u32 seed) {
    for (int i = 0; i < n; i++) {
        u32 c0 = i, c1 = 0, c2 = 0, c3 = 0, k0 = seed, k1 = 0;
        for (int round = 0; round < 10; round++) {
            u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
            c0 = (p1 >> 32) ^ c1 ^ k0, c2 = (p0 >> 32) ^ c3 ^ k1, c1 = p1, c3 = p0;
            k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
        }
        int v = c0;
        float uniform = (v < 0 ? -v - 1 : v) * 4.6566127342e-10f;
        out[i] = uniform > p ? x[i] / (1 - p) : 0;
    }
}

void triton_cumsum(const int *restrict in, int *restrict out, int columns, int rows) {
    for (int r = 0; r < rows; r++) {
        int sum = 0;
        for (int j = 0; j < columns; j++) out[r * columns + j] = sum += in[r * columns + j];
    }
}

void triton_cross_entropy(const float *restrict x, const int *label, float *restrict loss, int columns, int rows) {
    for (int r = 0; r < rows; r++, x += columns) {
        float top = -INFINITY, sum = 0;
        for (int j = 0; j < columns; j++) top = fmaxf(top, x[j]);
        for (int j = 0; j < columns; j++) sum += expf(x[j] - top);
        loss[r] = logf(sum) + top - x[label[r]];
    }
}
