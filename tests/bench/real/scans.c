#include "native.h"

void scan_hillis_steele(const float *in, float *out, int n) {
    for (int b = 0; b < n; b += 256) {
        float sum = 0;
        for (int i = b; i < b + 256 && i < n; i++) out[i] = sum += in[i];
    }
}

void scan_tree(const int *in, int *out, int n) {
    for (int b = 0; b < n; b += 256) {
        int sum = 0;
        for (int i = b; i < b + 256 && i < n; i++) {
            out[i] = sum;
            sum += in[i];
        }
    }
}

void scan_warps(const int *in, int *out, int n) {
    for (int b = 0; b < n; b += 512) {
        int sum = 0;
        for (int i = b; i < b + 512 && i < n; i++) out[i] = sum += in[i];
    }
}

void compact_ballot(const int *in, int *out, int *counts, int n) {
    for (int b = 0; b < n; b += 256) {
        int found = 0;
        for (int i = b; i < b + 256 && i < n; i++)
            if (in[i] > 0) out[b + found++] = in[i];
        counts[b / 256] = found;
    }
}
