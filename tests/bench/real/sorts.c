#include "native.h"

void bitonic_sort(const u32 *in, u32 *out, int blocks) {
    for (int block = 0; block < blocks; block++) {
        u32 *v = out + block * 512;
        memcpy(v, in + block * 512, 512 * sizeof(u32));
        for (int size = 2; size <= 512; size *= 2)
            for (int d = size / 2; d > 0; d /= 2)
                for (int t = 0; t < 256; t++) {
                    int a = 2 * t - (t & (d - 1)), b = a + d;
                    u32 x = v[a], y = v[b];
                    if ((x > y) == ((a & size) == 0)) v[a] = y, v[b] = x;
                }
    }
}

void odd_even_sort(const float *in, float *out, int blocks) {
    for (int block = 0; block < blocks; block++) {
        float *v = out + block * 128;
        memcpy(v, in + block * 128, 128 * sizeof(float));
        for (int step = 0; step < 128; step++)
            for (int a = step & 1; a + 1 < 128; a += 2)
                if (v[a] > v[a + 1]) {
                    float x = v[a];
                    v[a] = v[a + 1];
                    v[a + 1] = x;
                }
    }
}

void radix_pass(const u32 *in, u32 *out, int shift, int blocks) {
    for (int b = 0; b < blocks; b++, in += 1024, out += 1024) {
        u32 start[16] = {0}, sum = 0;
        for (int i = 0; i < 1024; i++) start[in[i] >> shift & 15]++;
        for (int d = 0; d < 16; d++) {
            u32 c = start[d];
            start[d] = sum;
            sum += c;
        }
        for (int i = 0; i < 1024; i++) out[start[in[i] >> shift & 15]++] = in[i];
    }
}

void merge_path(const int *a, const int *b, int *out, int na, int nb) {
    for (int i = 0, j = 0, k = 0; k < na + nb; k++) {
        int left = j >= nb || (i < na && a[i] <= b[j]);
        out[k] = left ? a[i++] : b[j++];
    }
}

void top_k(const float *in, float *out, int *where, int columns, int rows) {
    for (int r = 0; r < rows; r++, in += columns, out += 8, where += 8) {
        float last = INFINITY;
        int last_at = -1;
        for (int k = 0; k < 8; k++) {
            float best = -INFINITY;
            int at = columns;
            for (int j = 0; j < columns; j++) {
                int taken = in[j] > last || (in[j] == last && j <= last_at);
                if (!taken && in[j] > best) best = in[j], at = j;
            }
            last = out[k] = best, last_at = where[k] = at;
        }
    }
}
