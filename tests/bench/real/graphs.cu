// Graphs: triangles, a step of breadth-first search with a queue.

// The triangles at an edge, by merging the neighbours of its ends.
extern "C" __global__ void triangles(const int *row, const int *col, const int *eu, const int *ev, int m,
                                     unsigned long long *total) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned c = 0;
    if (e < m) {
        int i = row[eu[e]], ie = row[eu[e] + 1], j = row[ev[e]], je = row[ev[e] + 1];
        while (i < ie && j < je) { int a = col[i], b = col[j]; c += a == b; i += a <= b; j += b <= a; }
    }
    c = __reduce_add_sync(~0u, c);
    if ((threadIdx.x & 31) == 0 && c) atomicAdd(total, (unsigned long long)c);
}

// The neighbours of a frontier that nobody has seen: atomics claim them, and their places in the next one.
extern "C" __global__ void bfs_queue(const int *row, const int *col, const int *frontier, int nf, int *dist, int *next,
                                     int *count, int level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= nf) return;
    int v = frontier[i];
    for (int e = row[v]; e < row[v + 1]; e++) {
        int w = col[e];
        if (atomicCAS(&dist[w], -1, level) == -1) next[atomicAdd(count, 1)] = w;
    }
}
