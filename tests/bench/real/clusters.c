#include "native.h"

void cluster_sum(const float *in, float *out, int columns, int rows) {
    for (int r = 0; r < rows; r++) {
        float sum = 0;
        for (int j = 0; j < columns; j++) sum += in[r * columns + j];
        out[r] = sum;
    }
}

void cluster_histogram(const int *in, int *bins, int n) {
    for (int i = 0; i < n; i++) bins[in[i]]++;
}
