// Two lanes share a column, with 16 sums each, and the 32 lanes share out the weights.
// launch: sums<<<ceil_div(n, 64), 128>>>(x, w, out, n, k)

extern "C" __global__ void sums(const float* x, const float* w, float* out, int n, int k) {
    int lane = threadIdx.x % 32, half = lane / 16, i = blockIdx.x * 64 + threadIdx.x / 32 * 16 + lane % 16;
    float sum[16] = {};
    for (int row = 0; row < k; row++) {
        float v = i < n ? x[row * n + i] : 0, f = w[row * 32 + lane];
#pragma unroll
        for (int j = 0; j < 16; j++) sum[j] += __shfl_sync(0xffffffff, f, 16 * half + j) * v;
    }
    if (i >= n) return;
#pragma unroll
    for (int j = 0; j < 16; j++) out[(16 * half + j) * n + i] = sum[j];
}
