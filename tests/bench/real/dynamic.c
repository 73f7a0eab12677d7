#include "native.h"

static inline int most(int a, int b) { return a > b ? a : b; }
static inline int least(int a, int b) { return a < b ? a : b; }

void needleman_wunsch(const int *score, int *table, int n, int diagonal, int gap) {
    int tiles = n / 32, width = n + 1, first = diagonal < tiles ? 0 : diagonal - tiles + 1;
    for (int bx = first; bx <= diagonal - first; bx++) {
        int by = diagonal - bx;
        for (int y = by * 32; y < by * 32 + 32; y++)
            for (int x = bx * 32; x < bx * 32 + 32; x++) {
                int *at = table + (y + 1) * width + x + 1;
                *at = most(at[-width - 1] + score[y * n + x], most(at[-width], at[-1]) - gap);
            }
    }
}

void floyd_warshall(const int *restrict before, int *restrict after, int n, int k) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            after[i * n + j] = least(before[i * n + j], before[i * n + k] + before[k * n + j]);
}

void path_grid(const int *cost, int *out, int w, int h, int blocks) {
    int *next = malloc(w * sizeof(int));
    for (int b = 0; b < blocks; b++, cost += w * h, out += w) {
        memcpy(out, cost, w * sizeof(int));
        for (int y = 1; y < h; y++) {
            for (int x = 0; x < w; x++) {
                int best = out[x];
                if (x > 0) best = least(best, out[x - 1]);
                if (x < w - 1) best = least(best, out[x + 1]);
                next[x] = best + cost[y * w + x];
            }
            memcpy(out, next, w * sizeof(int));
        }
    }
    free(next);
}

void life(const u8 *restrict in, u8 *restrict out, int w, int h) {
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            int left = (x + w - 1) % w, right = (x + 1) % w, up = (y + h - 1) % h, down = (y + 1) % h;
            int n = in[up * w + left] + in[up * w + x] + in[up * w + right] + in[y * w + left] + in[y * w + right]
                + in[down * w + left] + in[down * w + x] + in[down * w + right];
            out[y * w + x] = n == 3 || (n == 2 && in[y * w + x]);
        }
}
