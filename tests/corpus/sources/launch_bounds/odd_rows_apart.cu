// Two warps share 32 columns: one has the even rows, the other the odd ones, and hands them over.
// launch: sums<<<ceil_div(n, 64), (32, 2, 2)>>>(x, w, out, n, k)

extern "C" __global__ void __launch_bounds__(128) sums(const float* x, const float* w, float* out, int n, int k) {
    __shared__ float odd[2][32][32];
    int lane = threadIdx.x, pair = threadIdx.y, i = blockIdx.x * 64 + pair * 32 + lane;
    bool is_odd = threadIdx.z;
    float sum[32] = {};
    for (int row = is_odd; row < k; row += 2) {
        float v = i < n ? x[(size_t)row * n + i] : 0, mine = w[row * 32 + lane];
#pragma unroll
        for (int j = 0; j < 32; j++) sum[j] = fmaf(__shfl_sync(0xffffffffu, mine, j), v, sum[j]);
    }
    // a barrier of 64 threads for each pair of warps
    if (is_odd) {
#pragma unroll
        for (int j = 0; j < 32; j++) odd[pair][j][lane] = sum[j];
        asm volatile("bar.arrive %0, 64;" ::"r"(pair + 1) : "memory");
        return;
    }
    asm volatile("bar.sync %0, 64;" ::"r"(pair + 1) : "memory");
    if (i < n)
#pragma unroll
        for (int j = 0; j < 32; j++) out[(size_t)j * n + i] = sum[j] + odd[pair][j][lane];
}
