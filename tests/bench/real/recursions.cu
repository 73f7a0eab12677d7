// Device functions that call themselves and each other, to another depth in each thread.

__device__ __noinline__ void sort(int *a, int low, int high) {
    if (low >= high) return;
    int pivot = a[(low + high) / 2], i = low, j = high;
    while (i <= j) {
        while (a[i] < pivot) i++;
        while (a[j] > pivot) j--;
        if (i <= j) {
            int t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
    }
    sort(a, low, j);
    sort(a, i, high);
}

extern "C" __global__ void quicksort(int *a, int length, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sort(a + i * length, 0, length - 1);
}

// The sum over a subtree, without the branches whose value is beyond a limit.
__device__ __noinline__ int walk(const int *left, const int *right, const int *value, int node, int limit) {
    if (node < 0) return 0;
    int v = value[node];
    if (v > limit) return 0;
    return v + walk(left, right, value, left[node], limit) + walk(left, right, value, right[node], limit);
}

extern "C" __global__ void tree_walk(
    const int *left, const int *right, const int *value, const int *root, int *out, int limit, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = walk(left, right, value, root[i], limit);
}

struct Node {
    int operation, a, b;
    float number;
};

// An expression's value: each node's function is called through a pointer, and calls those of its operands so.
typedef float (*Evaluates)(const Node *, int, float);
__device__ float evaluated(const Node *nodes, int i, float x);
__device__ __noinline__ float constant(const Node *nodes, int i, float) { return nodes[i].number; }
__device__ __noinline__ float variable(const Node *, int, float x) { return x; }
__device__ __noinline__ float sum(const Node *nodes, int i, float x) {
    return evaluated(nodes, nodes[i].a, x) + evaluated(nodes, nodes[i].b, x);
}
__device__ __noinline__ float product(const Node *nodes, int i, float x) {
    return evaluated(nodes, nodes[i].a, x) * evaluated(nodes, nodes[i].b, x);
}
__device__ __noinline__ float negative(const Node *nodes, int i, float x) { return -evaluated(nodes, nodes[i].a, x); }
__device__ Evaluates evaluators[5] = {constant, variable, sum, product, negative};
__device__ float evaluated(const Node *nodes, int i, float x) { return evaluators[nodes[i].operation](nodes, i, x); }

extern "C" __global__ void expression(const Node *nodes, const int *root, const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = evaluated(nodes, root[i], x[i]);
}

// Simpson's rule on halves of the interval until they agree.
__device__ double peak(double x, double at) { return 1 / (1e-2 + (x - at) * (x - at)); }

__device__ __noinline__ double simpson(
    double a, double b, double fa, double fm, double fb, double whole, double allowed, double at, int depth) {
    double m = 0.5 * (a + b), left = peak(0.5 * (a + m), at), right = peak(0.5 * (m + b), at);
    double low = (m - a) / 6 * (fa + 4 * left + fm), high = (b - m) / 6 * (fm + 4 * right + fb);
    double error = low + high - whole;
    if (depth <= 0 || fabs(error) <= 15 * allowed) return low + high + error / 15;
    return simpson(a, m, fa, left, fm, low, allowed / 2, at, depth - 1)
         + simpson(m, b, fm, right, fb, high, allowed / 2, at, depth - 1);
}

extern "C" __global__ void quadrature(const double *at, double *out, double allowed, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double fa = peak(0, at[i]), fm = peak(0.5, at[i]), fb = peak(1, at[i]);
    out[i] = simpson(0, 1, fa, fm, fb, (fa + 4 * fm + fb) / 6, allowed, at[i], 20);
}
