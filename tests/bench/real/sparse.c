#include "native.h"

void csr_scalar(const int *start, const int *column, const float *value, const float *x, float *y, int rows) {
    for (int row = 0; row < rows; row++) {
        float sum = 0;
        for (int k = start[row]; k < start[row + 1]; k++) sum += value[k] * x[column[k]];
        y[row] = sum;
    }
}

void csr_vector(const int *start, const int *column, const float *value, const float *x, float *y, int rows) {
    csr_scalar(start, column, value, x, y, rows);
}

void ell(const int *column, const double *value, const double *x, double *y, int rows, int width) {
    for (int row = 0; row < rows; row++) {
        double sum = 0;
        for (int k = 0; k < width; k++) {
            int j = column[k * rows + row];
            if (j >= 0) sum += value[k * rows + row] * x[j];
        }
        y[row] = sum;
    }
}

void bfs_step(const int *start, const int *to, const int *before, int *after, int *changed, int n, int now) {
    for (int v = 0; v < n; v++)
        if (before[v] == now)
            for (int k = start[v]; k < start[v + 1]; k++)
                if (before[to[k]] < 0) after[to[k]] = now + 1, *changed = 1;
}

void relax_edges(const int *from, const int *to, const u32 *cost, const u32 *before, u32 *after, int edges) {
    for (int e = 0; e < edges; e++) {
        u32 d = before[from[e]];
        if (d != ~0u && d + cost[e] < after[to[e]]) after[to[e]] = d + cost[e];
    }
}

void pagerank(const int *start, const int *source, const int *degree, const float *before, float *after, int n) {
    for (int v = 0; v < n; v++) {
        float sum = 0;
        for (int k = start[v]; k < start[v + 1]; k++) sum += before[source[k]] / degree[source[k]];
        after[v] = 0.15f / n + 0.85f * sum;
    }
}
