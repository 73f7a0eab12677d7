#include "native.h"

void sum_shared(const float *in, float *out, int n) {
    for (int b = 0; b * 512 < n; b++) {
        float sum = 0;
        for (int i = b * 512; i < b * 512 + 512 && i < n; i++) sum += in[i];
        out[b] = sum;
    }
}

static inline void strided(const int *in, int *out, int n, int threads, int blocks) {
    for (int b = 0; b < blocks; b++) {
        int sum = 0;
        for (int from = b * threads; from < n; from += blocks * threads)
            for (int i = from; i < from + threads && i < n; i++) sum += in[i];
        out[b] = sum;
    }
}

void sum_any_block(const int *in, int *out, int n, int threads, int blocks) { strided(in, out, n, threads, blocks); }
void cg_reduce(const int *in, int *out, int n, int threads, int blocks) { strided(in, out, n, threads, blocks); }

void dot_shuffle(const float *x, const float *y, float *out, int n, int threads, int blocks) {
    for (int b = 0; b < blocks; b++) {
        float sum = 0;
        for (int from = b * threads; from < n; from += blocks * threads)
            for (int i = from; i < from + threads && i < n; i++) sum += x[i] * y[i];
        out[b] = sum;
    }
}

void argmax_rows(const float *in, float *top, int *where, int columns, int rows) {
    for (int r = 0; r < rows; r++, in += columns) {
        float best = in[0];
        int at = 0;
        for (int j = 1; j < columns; j++)
            if (in[j] > best) best = in[j], at = j;
        top[r] = best, where[r] = at;
    }
}
