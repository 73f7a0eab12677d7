#include "native.h"

void look_back(const int *in, int *out, int n) {
    for (int i = 0, sum = 0; i < n; i++) out[i] = sum += in[i];
}

void two_buffers(const float *in, float *out, int tiles, int blocks) {
    for (int b = 0; b < blocks; b++)
        for (int j = 0; j < 96; j++) {
            float sum = 0;
            for (int k = 0; k < tiles; k++) sum += in[(b * tiles + k) * 96 + j];
            out[b * 96 + j] = sum;
        }
}

void chain_of_blocks(const int *in, int *out, int steps, int blocks) {
    for (int b = 0; b < blocks; b++)
        for (int t = 0; t < 64; t++) {
            u32 v = in[b * 64 + t] + (b ? (u32)out[(b - 1) * 64 + t] : 0);
            for (int k = 0; k < steps; k++) v = v * 5 + 1;
            out[b * 64 + t] = v;
        }
}

void cluster_argmax(const float *in, float *best, int *where, int columns, int rows) {
    for (int r = 0; r < rows; r++) {
        int at = 0;
        for (int j = 1; j < columns; j++) if (in[r * columns + j] > in[r * columns + at]) at = j;
        best[r] = in[r * columns + at], where[r] = at;
    }
}

void cluster_halo(const float *in, float *out, int steps, int clusters) {
    for (int c = 0; c < clusters; c++) {
        float two[2][514] = {{0}};
        for (int i = 0; i < 512; i++) two[0][i + 1] = in[c * 512 + i];
        for (int k = 0; k < steps; k++)
            for (int i = 1; i <= 512; i++)
                two[(k + 1) % 2][i] = 0.25f * two[k % 2][i - 1] + 0.5f * two[k % 2][i] + 0.25f * two[k % 2][i + 1];
        for (int i = 0; i < 512; i++) out[c * 512 + i] = two[steps % 2][i + 1];
    }
}

void cluster_lookup(const int *table, const int *index, int *out, int n) {
    for (int i = 0; i < n; i++) out[i] = table[index[i]];
}

void segmented_sum(const int *in, const int *id, int *sums, int n) {
    for (int i = 0; i < n; i++) sums[id[i]] += in[i];
}

void partition_ballot(const int *in, int *out, int *lefts, int pivot, int n) {
    for (int b = 0; b * 256 < n; b++) {
        int end = n - b * 256 < 256 ? n : b * 256 + 256, left = b * 256;
        for (int i = b * 256; i < end; i++) if (in[i] < pivot) out[left++] = in[i];
        lefts[b] = left - b * 256;
        for (int i = b * 256; i < end; i++) if (in[i] >= pivot) out[left++] = in[i];
    }
}
