#include "native.h"

void triangles(const int *row, const int *col, const int *from, const int *to, int m, u64 *total) {
    for (int e = 0; e < m; e++) {
        int i = row[from[e]], end = row[from[e] + 1], j = row[to[e]], last = row[to[e] + 1];
        while (i < end && j < last) {
            int a = col[i], b = col[j];
            *total += a == b;
            i += a <= b, j += b <= a;
        }
    }
}

void bfs_queue(const int *row, const int *col, const int *frontier, int many, int *dist, int *next, int *count,
               int level) {
    int found = *count;
    for (int i = 0; i < many; i++)
        for (int e = row[frontier[i]]; e < row[frontier[i] + 1]; e++)
            if (dist[col[e]] == -1) dist[col[e]] = level, next[found++] = col[e];
    *count = found;
}
