// Weights go through shared memory, 16 rows at a time; threads without a column stay for barriers.
// launch: sums<<<ceil_div(n, 128), 128>>>(x, w, out, n, k)

extern "C" __global__ void __launch_bounds__(128) sums(const float* x, const float* w, float* out, int n, int k) {
    __shared__ float held[16 * 32];
    int i = blockIdx.x * 128 + threadIdx.x;
    float sum[32] = {};
    for (int from = 0; from < k; from += 16) {
        int rows = min(16, k - from);
        for (int e = threadIdx.x; e < 32 * rows; e += 128) held[e] = w[32 * from + e];
        __syncthreads();
        for (int r = 0; r < rows; r++) {
            float v = i < n ? x[(from + r) * n + i] : 0;
#pragma unroll
            for (int j = 0; j < 32; j++) sum[j] = fmaf(held[32 * r + j], v, sum[j]);
        }
        __syncthreads();
    }
    if (i >= n) return;
#pragma unroll
    for (int j = 0; j < 32; j++) out[j * n + i] = sum[j];
}
