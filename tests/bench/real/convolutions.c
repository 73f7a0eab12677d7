#include "native.h"

void conv_2d(const float *restrict in, float *restrict out, int w, int h, const float *restrict filter) {
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            float sum = 0;
            for (int dy = 0; dy < 5; dy++)
                for (int dx = 0; dx < 5; dx++) {
                    int i = x + dx - 2, j = y + dy - 2;
                    if (i >= 0 && i < w && j >= 0 && j < h) sum += filter[dy * 5 + dx] * in[j * w + i];
                }
            out[y * w + x] = sum;
        }
}

void blur_rows(const u8 *restrict in, u8 *restrict out, int w, int h, const int *restrict taps) {
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            int sum = 128;
            for (int k = -4; k <= 4; k++) {
                int at = x + k < 0 ? 0 : x + k >= w ? w - 1 : x + k;
                sum += taps[k + 4] * in[y * w + at];
            }
            out[y * w + x] = sum >> 8;
        }
}

void conv_channels(const float *restrict in, const float *restrict weights, float *restrict out, int channels, int w,
                   int h, int outputs) {
    int ow = w - 2, oh = h - 2;
    for (int o = 0; o < outputs; o++)
        for (int y = 0; y < oh; y++)
            for (int x = 0; x < ow; x++) {
                float sum = 0;
                for (int c = 0; c < channels; c++)
                    for (int dy = 0; dy < 3; dy++)
                        for (int dx = 0; dx < 3; dx++)
                            sum += weights[(o * channels + c) * 9 + dy * 3 + dx] * in[(c * h + y + dy) * w + x + dx];
                out[(o * oh + y) * ow + x] = sum;
            }
}

void gemm_dp4a(const signed char *restrict a, const signed char *restrict b, const float *restrict scale,
               float *restrict c, int n, int words) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            int sum = 0;
            for (int k = 0; k < words; k++)
                for (int part = 0; part < 4; part++)
                    sum += a[(i * words + k) * 4 + part] * b[(k * n + j) * 4 + part];
            c[i * n + j] = sum * scale[i];
        }
}

void quantise_rows(const float *restrict in, signed char *restrict out, float *restrict scales, int columns, int rows) {
    for (int r = 0; r < rows; r++, in += columns, out += columns) {
        float top = 0;
        for (int j = 0; j < columns; j++) top = fmaxf(top, fabsf(in[j]));
        float scale = 127.0f / top;
        scales[r] = top / 127.0f;
        for (int j = 0; j < columns; j++) out[j] = (signed char)lrintf(in[j] * scale);
    }
}
