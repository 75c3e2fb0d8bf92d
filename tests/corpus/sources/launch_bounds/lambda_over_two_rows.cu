// Two rows of x at a time, so that two loads are under way, with a lambda for each row.
// launch: sums<<<ceil_div(n, 160), 160>>>(x, w, out, n, k)

extern "C" __global__ void __launch_bounds__(160) sums(const float* x, const float* w, float* out, int n, int k) {
    unsigned i = blockIdx.x * 160u + threadIdx.x;
    if (i >= n) return;
    float sum[32] = {};
    auto add = [&](int row, float v) {
#pragma unroll
        for (int j = 0; j < 32; j++) sum[j] += w[row * 32 + j] * v;
    };
    int row = 0;
    for (; row + 1 < k; row += 2) {
        float first = x[row * n + i], second = x[(row + 1) * n + i];
        add(row, first);
        add(row + 1, second);
    }
    if (row < k) add(row, x[row * n + i]);
#pragma unroll
    for (int j = 0; j < 32; j++) out[j * n + i] = sum[j];
}
