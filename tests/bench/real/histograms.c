#include "native.h"

void histogram_global(const u8 *in, u32 *bins, int n) {
    for (int i = 0; i < n; i++) bins[in[i]]++;
}

void histogram_shared(const u32 *in, u32 *bins, int n) {
    for (int i = 0; i < n; i++) {
        bins[in[i] & 255]++;
        bins[in[i] >> 8 & 255]++;
        bins[in[i] >> 16 & 255]++;
        bins[in[i] >> 24]++;
    }
}

void histogram_warps(const float *in, u32 *bins, int n, float low, float scale) {
    for (int i = 0; i < n; i++) {
        int bin = (int)((in[i] - low) * scale);
        if (bin >= 0 && bin < 64) bins[bin]++;
    }
}

void group_by(const int *keys, const float *values, float *sums, int *largest, int n) {
    for (int i = 0; i < n; i++) {
        int k = keys[i], v = (int)(values[i] * 1024.0f);
        sums[k] += values[i];
        if (v > largest[k]) largest[k] = v;
    }
}

void matched_sums(const u8 *keys, const int *values, int *sums, int n) {
    for (int i = 0; i < n; i++) sums[keys[i] & 31] += values[i];
}
