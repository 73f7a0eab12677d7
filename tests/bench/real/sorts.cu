// Sorts: a network in shared memory, odd-even transposition, a pass of a radix sort, a merge of two runs, top k.

extern "C" __global__ void bitonic_sort(const unsigned *in, unsigned *out) {
    __shared__ unsigned v[512];
    int t = threadIdx.x;
    const unsigned *mine = in + blockIdx.x * 512;
    v[t] = mine[t];
    v[t + 256] = mine[t + 256];
    for (int size = 2; size <= 512; size *= 2)
        for (int d = size / 2; d > 0; d /= 2) {
            __syncthreads();
            int a = 2 * t - (t & (d - 1)), b = a + d;
            bool up = (a & size) == 0;
            unsigned x = v[a], y = v[b];
            if ((x > y) == up) v[a] = y, v[b] = x;
        }
    __syncthreads();
    out[blockIdx.x * 512 + t] = v[t];
    out[blockIdx.x * 512 + t + 256] = v[t + 256];
}

extern "C" __global__ void odd_even_sort(const float *in, float *out) {
    __shared__ float v[128];
    int t = threadIdx.x, base = blockIdx.x * 128;
    v[t] = in[base + t];
    v[t + 64] = in[base + t + 64];
    for (int step = 0; step < 128; step++) {
        __syncthreads();
        int a = 2 * t + (step & 1);
        if (a + 1 < 128 && v[a] > v[a + 1]) {
            float x = v[a];
            v[a] = v[a + 1];
            v[a + 1] = x;
        }
    }
    __syncthreads();
    out[base + t] = v[t];
    out[base + t + 64] = v[t + 64];
}

// One pass over 4 bits: a block's keys in order of their digit, equal ones in their order.
extern "C" __global__ void radix_pass(const unsigned *in, unsigned *out, int shift) {
    __shared__ unsigned short count[16][128];
    __shared__ unsigned start[16];
    int t = threadIdx.x;
    const unsigned *mine = in + blockIdx.x * 1024 + t * 8;
    unsigned keys[8];
    for (int d = 0; d < 16; d++) count[d][t] = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        keys[k] = mine[k];
        count[keys[k] >> shift & 15][t]++;
    }
    __syncthreads();
    if (t < 16) {
        unsigned sum = 0;
        for (int i = 0; i < 128; i++) {
            unsigned c = count[t][i];
            count[t][i] = sum;
            sum += c;
        }
        start[t] = sum;
    }
    __syncthreads();
    if (t == 0) {
        unsigned sum = 0;
        for (int d = 0; d < 16; d++) {
            unsigned c = start[d];
            start[d] = sum;
            sum += c;
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; k++) {
        int d = keys[k] >> shift & 15;
        out[blockIdx.x * 1024 + start[d] + count[d][t]++] = keys[k];
    }
}

// Two sorted runs become one: each thread finds by bisection how much of either comes before its part, and merges it.
extern "C" __global__ void merge_path(const int *a, const int *b, int *out, int na, int nb, int part) {
    int from = (blockIdx.x * blockDim.x + threadIdx.x) * part, n = na + nb;
    if (from >= n) return;
    int low = max(0, from - nb), high = min(from, na);
    while (low < high) {
        int middle = (low + high) / 2;
        if (a[middle] <= b[from - 1 - middle]) low = middle + 1;
        else high = middle;
    }
    int i = low, j = from - low;
    for (int k = from; k < min(from + part, n); k++) {
        bool left = j >= nb || (i < na && a[i] <= b[j]);
        out[k] = left ? a[i++] : b[j++];
    }
}

// The 8 largest of each row: a warp a row, the largest is taken out eight times.
extern "C" __global__ void top_k(const float *in, float *out, int *where, int columns) {
    int lane = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y;
    const float *mine = in + row * columns;
    float last = INFINITY;
    int last_at = -1;
    for (int k = 0; k < 8; k++) {
        float best = -INFINITY;
        int at = columns;
        for (int j = lane; j < columns; j += 32) {
            float v = mine[j];
            bool taken = v > last || (v == last && j <= last_at);
            if (!taken && v > best) best = v, at = j;
        }
        for (int d = 16; d > 0; d /= 2) {
            float other = __shfl_xor_sync(~0u, best, d);
            int other_at = __shfl_xor_sync(~0u, at, d);
            if (other > best || (other == best && other_at < at)) best = other, at = other_at;
        }
        last = best, last_at = at;
        if (lane == 0) out[row * 8 + k] = best, where[row * 8 + k] = at;
    }
}
