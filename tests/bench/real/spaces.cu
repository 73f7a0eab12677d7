// Points, fields and paths: nearest of many, tests against shapes, flows, walks, state machines.

extern "C" __global__ void kmeans_assign(const float *points, const float *centres, int *label, int n, int k) {
    extern __shared__ float c[];
    for (int j = threadIdx.x; j < k * 8; j += blockDim.x) c[j] = centres[j];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float p[8];
    for (int d = 0; d < 8; d++) p[d] = points[i * 8 + d];
    float best = 1e30f;
    int at = 0;
    for (int j = 0; j < k; j++) {
        float s = 0;
        for (int d = 0; d < 8; d++) s += (p[d] - c[j * 8 + d]) * (p[d] - c[j * 8 + d]);
        if (s < best) best = s, at = j;
    }
    label[i] = at;
}

// The four nearest of all points on a line, by insertion into registers.
extern "C" __global__ void knn4(const int *query, const int *points, int *out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int q = query[i], best[4] = {1 << 30, 1 << 30, 1 << 30, 1 << 30};
    for (int j = 0; j < m; j++) {
        int d = abs(points[j] - q);
        if (d >= best[3]) continue;
        best[3] = d;
        for (int s = 3; s > 0; s--)
            if (best[s] < best[s - 1]) {
                int t = best[s];
                best[s] = best[s - 1], best[s - 1] = t;
            }
    }
    for (int s = 0; s < 4; s++) out[i * 4 + s] = best[s];
}

extern "C" __global__ void point_in_polygon(const float *px, const float *py, const float2 *corner, int *inside,
                                            int n, int corners) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = px[i], y = py[i];
    bool in = false;
    float2 a = corner[corners - 1];
    for (int j = 0; j < corners; j++) {
        float2 b = corner[j];
        if ((a.y > y) != (b.y > y))
            if ((x - a.x) * (b.y - a.y) < (b.x - a.x) * (y - a.y) != (b.y < a.y)) in = !in;
        a = b;
    }
    inside[i] = in;
}

// Boxes that overlap later ones, counted by warps.
extern "C" __global__ void collide(const int4 *box, int *hits, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, mine = 0;
    if (i < n) {
        int4 a = box[i];
        for (int j = i + 1; j < n; j++) {
            int4 b = box[j];
            mine += a.x < b.z && b.x < a.z && a.y < b.w && b.y < a.w;
        }
    }
    for (int s = 16; s; s >>= 1) mine += __shfl_down_sync(0xffffffff, mine, s);
    if ((threadIdx.x & 31) == 0) atomicAdd(hits, mine);
}

// A field carried along by a flow: each cell looks up where its content was, between four cells.
extern "C" __global__ void advect(const float *field, const float *u, const float *v, float *out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float fx = fminf(fmaxf(x - u[y * w + x], 0.0f), w - 1.001f), fy = fminf(fmaxf(y - v[y * w + x], 0.0f), h - 1.001f);
    int ix = (int)fx, iy = (int)fy;
    float ax = fx - ix, ay = fy - iy;
    const float *at = field + iy * w + ix;
    out[y * w + x] = (1 - ay) * ((1 - ax) * at[0] + ax * at[1]) + ay * ((1 - ax) * at[w] + ax * at[w + 1]);
}

// One step of the lattice Boltzmann method with nine speeds on a torus: stream, then relax.
__constant__ int lbm_x[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, lbm_y[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
__constant__ float lbm_w[9] = {4 / 9.f, 1 / 9.f, 1 / 9.f, 1 / 9.f, 1 / 9.f, 1 / 36.f, 1 / 36.f, 1 / 36.f, 1 / 36.f};
extern "C" __global__ void lattice_boltzmann(const float *before, float *after, int w, int h, float omega) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= w) return;
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

// Walks on a grid until they leave a square.
extern "C" __global__ void random_walk(const unsigned *seeds, int *steps, int n, int size, int most) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned s = seeds[i];
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

// Queens on a board of n x n behind each placing of the first two, without recursion.
extern "C" __global__ void queens(int *solutions, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, a = t / n, b = t % n;
    if (t >= n * n) return;
    unsigned full = (1u << n) - 1, column[20], left[20], right[20], free[20];
    int found = 0, depth = 2;
    if (abs(a - b) > 1) {
        column[2] = 1u << a | 1u << b;
        left[2] = (1u << a << 1 | 1u << b) << 1, right[2] = (1u << a >> 1 | 1u << b) >> 1;
        free[2] = full & ~(column[2] | left[2] | right[2]);
        while (depth >= 2) {
            if (!free[depth]) { depth--; continue; }
            unsigned bit = free[depth] & -free[depth];
            free[depth] ^= bit;
            if (depth == n - 1) { found++; continue; }
            column[depth + 1] = column[depth] | bit;
            left[depth + 1] = (left[depth] | bit) << 1, right[depth + 1] = (right[depth] | bit) >> 1;
            depth++;
            free[depth] = full & ~(column[depth] | left[depth] | right[depth]);
        }
    }
    solutions[t] = found;
}

// The cheapest path through a hidden Markov model, a block for each sequence, a thread for each state.
extern "C" __global__ void viterbi(const int *step, const int *emit, const unsigned char *seen, int *cost, int length) {
    __shared__ int now[64];
    int s = threadIdx.x, mine = emit[s * 16 + seen[blockIdx.x * length]];
    for (int t = 1; t < length; t++) {
        now[s] = mine;
        __syncthreads();
        int best = 1 << 30;
        for (int r = 0; r < 64; r++) best = min(best, now[r] + step[r * 64 + s]);
        mine = best + emit[s * 16 + seen[blockIdx.x * length + t]];
        __syncthreads();
    }
    cost[blockIdx.x * 64 + s] = mine;
}

// Ranks in linked lists, by doubling.
extern "C" __global__ void pointer_jump(const int *next, const int *rank, int *next_out, int *rank_out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int to = next[i];
    rank_out[i] = rank[i] + (to == i ? 0 : rank[to]);
    next_out[i] = next[to];
}
