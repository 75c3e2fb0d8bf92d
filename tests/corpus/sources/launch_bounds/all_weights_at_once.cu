// Up to 256 rows of weights in dynamic shared memory, whose size the launch takes from k.
// launch: sums<<<ceil_div(n, 256), 256, 128 * min(k, 256)>>>(x, w, out, n, k)

extern __shared__ float weights[];

extern "C" __global__ void __launch_bounds__(256, 2) sums(const float* x, const float* w, float* out, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum[32] = {};
    for (int from = 0; from < k; from += 256) {
        int rows = min(256, k - from);
        __syncthreads();
        for (int e = threadIdx.x; e < 32 * rows; e += blockDim.x) weights[e] = w[32 * from + e];
        __syncthreads();
        for (int row = 0; row < rows && i < n; row++) {
            float v = __ldcs(&x[(from + row) * n + i]);
#pragma unroll
            for (int j = 0; j < 32; j++) sum[j] += weights[32 * row + j] * v;
        }
    }
    if (i >= n) return;
#pragma unroll
    for (int j = 0; j < 32; j++) __stcs(&out[j * n + i], sum[j]);
}
