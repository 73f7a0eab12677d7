#include "native.h"

#define CALLED static __attribute__((noinline))

CALLED void sort(int *a, int low, int high) {
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

void quicksort(int *a, int length, int n) {
    for (int i = 0; i < n; i++) sort(a + i * length, 0, length - 1);
}

CALLED int walk(const int *left, const int *right, const int *value, int node, int limit) {
    if (node < 0) return 0;
    int v = value[node];
    if (v > limit) return 0;
    return v + walk(left, right, value, left[node], limit) + walk(left, right, value, right[node], limit);
}

void tree_walk(
    const int *left, const int *right, const int *value, const int *root, int *out, int limit, int n) {
    for (int i = 0; i < n; i++) out[i] = walk(left, right, value, root[i], limit);
}

typedef struct {
    int operation, a, b;
    float number;
} Node;
typedef float (*Evaluates)(const Node *, int, float);
static Evaluates volatile evaluators[5];

static float evaluated(const Node *nodes, int i, float x) { return evaluators[nodes[i].operation](nodes, i, x); }
CALLED float constant(const Node *nodes, int i, float x) { return nodes[i].number; }
CALLED float variable(const Node *nodes, int i, float x) { return x; }
CALLED float sum(const Node *nodes, int i, float x) {
    return evaluated(nodes, nodes[i].a, x) + evaluated(nodes, nodes[i].b, x);
}
CALLED float product(const Node *nodes, int i, float x) {
    return evaluated(nodes, nodes[i].a, x) * evaluated(nodes, nodes[i].b, x);
}
CALLED float negative(const Node *nodes, int i, float x) { return -evaluated(nodes, nodes[i].a, x); }
static Evaluates volatile evaluators[5] = {constant, variable, sum, product, negative};

void expression(const Node *nodes, const int *root, const float *x, float *out, int n) {
    for (int i = 0; i < n; i++) out[i] = evaluated(nodes, root[i], x[i]);
}

static double peak(double x, double at) { return 1 / (1e-2 + (x - at) * (x - at)); }

CALLED double simpson(
    double a, double b, double fa, double fm, double fb, double whole, double allowed, double at, int depth) {
    double m = 0.5 * (a + b), left = peak(0.5 * (a + m), at), right = peak(0.5 * (m + b), at);
    double low = (m - a) / 6 * (fa + 4 * left + fm), high = (b - m) / 6 * (fm + 4 * right + fb);
    double error = low + high - whole;
    if (depth <= 0 || fabs(error) <= 15 * allowed) return low + high + error / 15;
    return simpson(a, m, fa, left, fm, low, allowed / 2, at, depth - 1)
         + simpson(m, b, fm, right, fb, high, allowed / 2, at, depth - 1);
}

void quadrature(const double *at, double *out, double allowed, int n) {
    for (int i = 0; i < n; i++) {
        double fa = peak(0, at[i]), fm = peak(0.5, at[i]), fb = peak(1, at[i]);
        out[i] = simpson(0, 1, fa, fm, fb, (fa + 4 * fm + fb) / 6, allowed, at[i], 20);
    }
}
