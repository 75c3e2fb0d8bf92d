// One sum for each thread, so all warps fit. But x is read 32 times.
// launch: sums<<<(ceil_div(n, 256), 32), 256>>>(x, w, out, n, k)

extern "C" __global__ void __launch_bounds__(256, 8)
sums(const float* x, const float* w, float* out, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;
    if (i >= n) return;
    float sum = 0;
    for (int row = 0; row < k; row++) sum += w[row * 32 + j] * x[row * n + i];
    out[j * n + i] = sum;
}
