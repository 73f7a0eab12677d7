#include "native.h"

void spin_lock(const int *in, int *total, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += in[i];
    *total += sum;
}

void chained_scan(const int *in, int *out, int *sums, int *flags, int n, int epoch) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        out[i] = sum += in[i];
        if (i % 256 == 255 || i == n - 1) sums[i / 256] = sum, flags[i / 256] = epoch;
    }
}

void last_block(const float *in, float *parts, float *out, u32 *count, int n, int blocks) {
    float all = 0;
    for (int b = 0; b < blocks; b++) {
        float sum = 0;
        for (int from = b * 256; from < n; from += blocks * 256)
            for (int i = from; i < from + 256 && i < n; i++) sum += in[i];
        parts[b] = sum;
    }
    for (int b = 0; b < blocks; b++) all += parts[b];
    *out = all;
    *count = 0;
}

void acquire_release(const u32 *in, u32 *out, int rounds, int blocks) {
    for (int b = 0; b < blocks; b++)
        for (int lane = 0; lane < 32; lane++) {
            u32 v = in[b * 32 + lane];
            for (int r = 0; r < rounds; r++)
                for (int warp = 0; warp < 4; warp++)
                    for (int k = 0; k < 40; k++) v = v * 3 + warp + k;
            out[b * 32 + lane] = v;
        }
}
