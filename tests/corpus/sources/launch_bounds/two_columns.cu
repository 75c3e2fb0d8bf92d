// Two columns for each thread, a block apart: each weight that is read serves both.
// launch: sums<<<ceil_div(n, 256), 128>>>(x, w, out, n, k)

extern "C" __global__ void __launch_bounds__(128, 4) sums(const float* x, const float* w, float* out, int n, int k) {
    int i = blockIdx.x * 256 + threadIdx.x, i2 = i + 128;
    if (i >= n) return;
    float sum[32] = {}, sum2[32] = {};
    for (int row = 0; row < k; row++) {
        float v = x[row * n + i], v2 = i2 < n ? x[row * n + i2] : 0;
#pragma unroll
        for (int j = 0; j < 32; j++) {
            float f = __ldg(w + row * 32 + j);
            sum[j] += f * v;
            sum2[j] += f * v2;
        }
    }
#pragma unroll
    for (int j = 0; j < 32; j++) {
        out[j * n + i] = sum[j];
        if (i2 < n) out[j * n + i2] = sum2[j];
    }
}
