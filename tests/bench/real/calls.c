#include "native.h"
#include <assert.h>

static __attribute__((noinline)) float polynomial(float x, const float *c, int degree) {
    float y = c[degree];
    for (int k = degree - 1; k >= 0; k--) y = y * x + c[k];
    return y;
}

void noinline_call(const float *x, float *y, const float *c, int degree, int n) {
    for (int i = 0; i < n; i++) y[i] = polynomial(x[i], c, degree) - polynomial(-x[i], c, degree);
}

static __attribute__((noinline)) u32 rotated(u32 x, u32 y) { return (x << (y & 31)) | (x >> (-y & 31)); }
static __attribute__((noinline)) u32 mixed(u32 x, u32 y) { return (x ^ y) * 0x9E3779B1; }
static __attribute__((noinline)) u32 summed(u32 x, u32 y) { return 3 * x + y; }
static u32 (*volatile operations[3])(u32, u32) = {rotated, mixed, summed};

void function_pointer(const u32 *x, const int *which, u32 *out, int n, int steps) {
    for (int i = 0; i < n; i++) {
        u32 v = x[i];
        for (int k = 0; k < steps; k++) v = operations[which[(i / 64 + k) % steps]](v, k);
        out[i] = v;
    }
}

static __attribute__((noinline)) int ways(int amount, int coin) {
    static const int worth[4] = {1, 2, 5, 10};
    if (amount == 0) return 1;
    if (amount < 0 || coin < 0) return 0;
    return ways(amount - worth[coin], coin) + ways(amount, coin - 1);
}

void recursion(const int *amounts, int *out, int n) {
    for (int i = 0; i < n; i++) out[i] = ways(amounts[i], 3);
}

void asserted(const float *x, const int *index, float *y, int n, int m) {
    for (int i = 0; i < n; i++) {
        int at = index[i];
        assert(at >= 0 && at < m);
        float v = x[at];
        assert(v == v);
        y[i] = 2.0f * v;
    }
}
