#include "native.h"

void insertion_sort(const int *in, int *out, int n) {
    for (int i = 0; i < n; i++) {
        int v[16];
        memcpy(v, in + i * 16, sizeof v);
        for (int k = 1; k < 16; k++) {
            int x = v[k], j = k;
            while (j > 0 && v[j - 1] > x) {
                v[j] = v[j - 1];
                j--;
            }
            v[j] = x;
        }
        memcpy(out + i * 16, v, sizeof v);
    }
}

void tree_count(const float *points, int nodes, const float *boxes, int *out, int n) {
    for (int i = 0; i < n; i++) {
        const float *box = boxes + 4 * i;
        int stack[32], top = 0, found = 0;
        stack[top++] = 1;
        while (top > 0) {
            int node = stack[--top];
            if (node > nodes) continue;
            const float *p = points + 2 * (node - 1);
            if (p[0] >= box[0] && p[0] <= box[2] && p[1] >= box[1] && p[1] <= box[3]) found++;
            int axis = (31 - __builtin_clz(node)) % 2;
            if (box[axis] <= p[axis]) stack[top++] = 2 * node;
            if (box[2 + axis] >= p[axis]) stack[top++] = 2 * node + 1;
        }
        out[i] = found;
    }
}

void mode_rows(const u8 *in, int *out, int rows, int columns) {
    for (int i = 0; i < rows; i++) {
        int count[16] = {0}, best = 0;
        for (int j = 0; j < columns; j++) count[in[i * columns + j] & 15]++;
        for (int k = 1; k < 16; k++)
            if (count[k] > count[best]) best = k;
        out[i] = best;
    }
}

void edit_distance(const char *a, const char *b, int *out, int n, int length) {
    for (int i = 0; i < n; i++) {
        int row[33];
        for (int j = 0; j <= length; j++) row[j] = j;
        for (int k = 1; k <= length; k++) {
            int diagonal = row[0];
            row[0] = k;
            char c = a[i * length + k - 1];
            for (int j = 1; j <= length; j++) {
                int up = row[j], cost = diagonal + (c != b[i * length + j - 1]);
                int step = (up < row[j - 1] ? up : row[j - 1]) + 1;
                row[j] = step < cost ? step : cost;
                diagonal = up;
            }
        }
        out[i] = row[length];
    }
}
