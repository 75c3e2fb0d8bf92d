// Weights come by cp.async, 16 bytes a thread, into a ring of four rows; one barrier a row.
// launch: sums<<<ceil_div(n, 64), 64>>>(x, w, out, n, k)

extern "C" __global__ void __launch_bounds__(64) sums(const float* x, const float* w, float* out, int n, int k) {
    __shared__ alignas(16) float ring[4][32];
    const int t = threadIdx.x, i = min(blockIdx.x * 64 + t, n - 1);
    auto ask = [&](int row) {
        if (t < 8 && row < k) {
            unsigned to = (unsigned)__cvta_generic_to_shared(&ring[row & 3][4 * t]);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(w + row * 32 + 4 * t) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    float sum[32] = {};
    ask(0), ask(1), ask(2);
    for (int row = 0; row < k; row++) {
        asm volatile("cp.async.wait_group 2;" ::: "memory");
        __syncthreads();
        ask(row + 3);
        float v = __ldcs(x + (size_t)row * n + i);
#pragma unroll
        for (int j = 0; j < 32; j += 2) {
            float2 two = *(const float2*)&ring[row & 3][j];
            sum[j] += two.x * v, sum[j + 1] += two.y * v;
        }
    }
    // threads beyond the end have the last column, too, and write it no more
    if (blockIdx.x * 64 + t < n)
#pragma unroll
        for (int j = 0; j < 32; j++) out[(size_t)j * n + i] = sum[j];
}
