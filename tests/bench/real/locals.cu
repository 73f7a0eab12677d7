// Arrays of a thread's own, indexed by values: insertion sort, a private stack, a table of counters, a small matrix.

extern "C" __global__ void insertion_sort(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v[16];
    for (int k = 0; k < 16; k++) v[k] = in[i * 16 + k];
#pragma unroll 1
    for (int k = 1; k < 16; k++) {
        int x = v[k], j = k;
#pragma unroll 1
        while (j > 0 && v[j - 1] > x) {
            v[j] = v[j - 1];
            j--;
        }
        v[j] = x;
    }
    for (int k = 0; k < 16; k++) out[i * 16 + k] = v[k];
}

// Points in a box, found in a balanced tree of points (split by x and y in turns) with a stack a thread.
extern "C" __global__ void tree_count(const float2 *points, int nodes, const float4 *boxes, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 box = boxes[i];
    int stack[32], top = 0, found = 0;
    stack[top++] = 1;
    while (top > 0) {
        int node = stack[--top];
        if (node > nodes) continue;
        float2 p = points[node - 1];
        if (p.x >= box.x && p.x <= box.z && p.y >= box.y && p.y <= box.w) found++;
        bool by_x = (31 - __clz(node)) % 2 == 0;
        float at = by_x ? p.x : p.y;
        if ((by_x ? box.x : box.y) <= at) stack[top++] = 2 * node;
        if ((by_x ? box.z : box.w) >= at) stack[top++] = 2 * node + 1;
    }
    out[i] = found;
}

// The most frequent of 16 symbols in each row, counted in an array of the thread.
extern "C" __global__ void mode_rows(const unsigned char *in, int *out, int rows, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    int count[16] = {};
    for (int j = 0; j < columns; j++) count[in[i * columns + j] & 15]++;
    int best = 0;
    for (int k = 1; k < 16; k++)
        if (count[k] > count[best]) best = k;
    out[i] = best;
}

// Levenshtein's distance of pairs of short words, a row of the table in local memory.
extern "C" __global__ void edit_distance(const char *a, const char *b, int *out, int n, int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int row[33];
    for (int j = 0; j <= length; j++) row[j] = j;
    for (int k = 1; k <= length; k++) {
        int diagonal = row[0];
        row[0] = k;
        char c = a[i * length + k - 1];
        for (int j = 1; j <= length; j++) {
            int up = row[j], cost = diagonal + (c != b[i * length + j - 1]);
            row[j] = min(min(up, row[j - 1]) + 1, cost);
            diagonal = up;
        }
    }
    out[i] = row[length];
}
