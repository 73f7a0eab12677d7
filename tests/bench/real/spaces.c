#include "native.h"

void kmeans_assign(const float *points, const float *c, int *label, int n, int k) {
    for (int i = 0; i < n; i++) {
        float best = 1e30f;
        int at = 0;
        for (int j = 0; j < k; j++) {
            float s = 0;
            for (int d = 0; d < 8; d++) s += (points[i * 8 + d] - c[j * 8 + d]) * (points[i * 8 + d] - c[j * 8 + d]);
            if (s < best) best = s, at = j;
        }
        label[i] = at;
    }
}

void knn4(const int *query, const int *points, int *out, int n, int m) {
    for (int i = 0; i < n; i++) {
        int best[4] = {1 << 30, 1 << 30, 1 << 30, 1 << 30};
        for (int j = 0; j < m; j++) {
            int d = abs(points[j] - query[i]);
            if (d >= best[3]) continue;
            best[3] = d;
            for (int s = 3; s > 0; s--)
                if (best[s] < best[s - 1]) {
                    int t = best[s];
                    best[s] = best[s - 1], best[s - 1] = t;
                }
        }
        memcpy(out + i * 4, best, sizeof best);
    }
}

void point_in_polygon(const float *px, const float *py, const float *corner, int *inside, int n, int corners) {
    for (int i = 0; i < n; i++) {
        float x = px[i], y = py[i];
        int in = 0;
        for (int j = 0, k = corners - 1; j < corners; k = j++) {
            float ax = corner[2 * k], ay = corner[2 * k + 1], bx = corner[2 * j], by = corner[2 * j + 1];
            if ((ay > y) != (by > y))
                if (((x - ax) * (by - ay) < (bx - ax) * (y - ay)) != (by < ay)) in = !in;
        }
        inside[i] = in;
    }
}

void collide(const int *box, int *hits, int n) {
    int found = 0;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) {
            const int *a = box + 4 * i, *b = box + 4 * j;
            found += a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
        }
    *hits += found;
}

void advect(const float *field, const float *u, const float *v, float *out, int w, int h) {
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            float fx = fminf(fmaxf(x - u[y * w + x], 0.0f), w - 1.001f);
            float fy = fminf(fmaxf(y - v[y * w + x], 0.0f), h - 1.001f);
            int ix = (int)fx, iy = (int)fy;
            float ax = fx - ix, ay = fy - iy;
            const float *at = field + iy * w + ix;
            out[y * w + x] = (1 - ay) * ((1 - ax) * at[0] + ax * at[1]) + ay * ((1 - ax) * at[w] + ax * at[w + 1]);
        }
}

static const int lbm_x[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, lbm_y[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
static const float lbm_w[9] = {4 / 9.f, 1 / 9.f, 1 / 9.f, 1 / 9.f, 1 / 9.f, 1 / 36.f, 1 / 36.f, 1 / 36.f, 1 / 36.f};

void lattice_boltzmann(const float *before, float *after, int w, int h, float omega) {
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            float f[9], rho = 0, ux = 0, uy = 0;
            for (int d = 0; d < 9; d++) {
                int sx = (x - lbm_x[d] + w) % w, sy = (y - lbm_y[d] + h) % h;
                f[d] = before[(d * h + sy) * w + sx];
                rho += f[d], ux += lbm_x[d] * f[d], uy += lbm_y[d] * f[d];
            }
            ux /= rho, uy /= rho;
            float square = 1.5f * (ux * ux + uy * uy);
            for (int d = 0; d < 9; d++) {
                float along = 3 * (lbm_x[d] * ux + lbm_y[d] * uy);
                float still = lbm_w[d] * rho * (1 + along + 0.5f * along * along - square);
                after[(d * h + y) * w + x] = f[d] + omega * (still - f[d]);
            }
        }
}

void random_walk(const u32 *seeds, int *steps, int n, int size, int most) {
    for (int i = 0; i < n; i++) {
        u32 s = seeds[i];
        int x = 0, y = 0, count = 0;
        while (count < most && abs(x) < size && abs(y) < size) {
            s ^= s << 13, s ^= s >> 17, s ^= s << 5;
            switch (s & 3) {
                case 0: x++; break;
                case 1: x--; break;
                case 2: y++; break;
                default: y--;
            }
            count++;
        }
        steps[i] = count;
    }
}

static int placed(u32 full, u32 column, u32 left, u32 right) {
    if (column == full) return 1;
    int found = 0;
    for (u32 rest = full & ~(column | left | right); rest; rest &= rest - 1) {
        u32 bit = rest & -rest;
        found += placed(full, column | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return found;
}

void queens(int *solutions, int n) {
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            u32 one = 1u << a, two = 1u << b;
            solutions[a * n + b] = abs(a - b) > 1
                ? placed((1u << n) - 1, one | two, (one << 1 | two) << 1, (one >> 1 | two) >> 1) : 0;
        }
}

void viterbi(const int *step, const int *emit, const u8 *seen, int *cost, int length, int sequences) {
    for (int q = 0; q < sequences; q++, seen += length, cost += 64) {
        int now[64], next[64];
        for (int s = 0; s < 64; s++) now[s] = emit[s * 16 + seen[0]];
        for (int t = 1; t < length; t++) {
            for (int s = 0; s < 64; s++) next[s] = 1 << 30;
            for (int r = 0; r < 64; r++)
                for (int s = 0; s < 64; s++) {
                    int over = now[r] + step[r * 64 + s];
                    next[s] = over < next[s] ? over : next[s];
                }
            for (int s = 0; s < 64; s++) now[s] = next[s] + emit[s * 16 + seen[t]];
        }
        memcpy(cost, now, sizeof now);
    }
}

void pointer_jump(const int *next, const int *rank, int *next_out, int *rank_out, int n) {
    for (int i = 0; i < n; i++) {
        int to = next[i];
        rank_out[i] = rank[i] + (to == i ? 0 : rank[to]);
        next_out[i] = next[to];
    }
}
