#include "native.h"

void softmax_rows(const float *restrict in, float *restrict out, int columns, int rows) {
    for (int r = 0; r < rows; r++, in += columns, out += columns) {
        float top = -INFINITY, sum = 0;
        for (int j = 0; j < columns; j++) top = fmaxf(top, in[j]);
        for (int j = 0; j < columns; j++) sum += out[j] = expf(in[j] - top);
        for (int j = 0; j < columns; j++) out[j] /= sum;
    }
}

void layer_norm(const float *restrict in, const float *restrict weight, const float *restrict bias, float *restrict out,
                int columns, float eps, int rows) {
    for (int r = 0; r < rows; r++, in += columns, out += columns) {
        float sum = 0, squares = 0;
        for (int j = 0; j < columns; j++) sum += in[j];
        float mean = sum / columns;
        for (int j = 0; j < columns; j++) squares += (in[j] - mean) * (in[j] - mean);
        float scale = 1 / sqrtf(squares / columns + eps);
        for (int j = 0; j < columns; j++) out[j] = (in[j] - mean) * scale * weight[j] + bias[j];
    }
}

void attention_64(const float *restrict q, const float *restrict k, const float *restrict v, float *restrict out,
                  int keys, float scale, int queries) {
    float *scores = malloc(keys * sizeof(float));
    for (int i = 0; i < queries; i++) {
        float top = -INFINITY, total = 0;
        for (int j = 0; j < keys; j++) {
            float dot = 0;
            for (int d = 0; d < 32; d++) dot += q[i * 32 + d] * k[j * 32 + d];
            scores[j] = dot * scale;
            top = fmaxf(top, scores[j]);
        }
        for (int j = 0; j < keys; j++) total += scores[j] = expf(scores[j] - top);
        memset(out + i * 32, 0, 32 * sizeof(float));
        for (int j = 0; j < keys; j++) {
            float weight = scores[j] / total;
            for (int d = 0; d < 32; d++) out[i * 32 + d] += weight * v[j * 32 + d];
        }
    }
    free(scores);
}

void gelu(const float *x, float *y, int n) {
    for (int i = 0; i < n; i++) {
        float v = x[i];
        y[i] = 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)));
    }
}

static inline u32 mixed(u32 x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

void dropout(const float *restrict x, float *restrict y, u32 seed, u32 threshold, float scale, int n) {
    for (int i = 0; i < 4 * n; i++) y[i] = mixed(i + seed) >= threshold ? x[i] * scale : 0;
}

void perceptron(const float *restrict in, float *restrict out, int n, const float *restrict weights) {
    for (int i = 0; i < n; i++) {
        float x[16], h[48], sum = 0;
        for (int k = 0; k < 16; k++) x[k] = in[k * n + i];
        for (int j = 0; j < 48; j++) {
            float v = 0;
            for (int k = 0; k < 16; k++) v += x[k] * weights[j * 16 + k];
            h[j] = fmaxf(v, 0);
        }
        for (int j = 0; j < 48; j++) {
            float v = 0;
            for (int k = 0; k < 48; k++) v += h[k] * weights[768 + j * 48 + k];
            sum += fmaxf(v, 0) * weights[768 + 2304 + j];
        }
        out[i] = sum;
    }
}

void adam(float *restrict p, const float *restrict g, float *restrict m, float *restrict v, float rate, float b1,
          float b2, float eps, int n) {
    for (int i = 0; i < n; i++) {
        float d = g[i], mm = b1 * m[i] + (1 - b1) * d, vv = b2 * v[i] + (1 - b2) * d * d;
        m[n + i] = mm, v[n + i] = vv;
        p[n + i] = p[i] - rate * mm / (sqrtf(vv) + eps);
    }
}
