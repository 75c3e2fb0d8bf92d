// Threads without a column leave before the loop, whose barriers wait for those that stay.
// launch: sums<<<ceil_div(n, 128), 128>>>(x, w, out, n, k)

extern "C" __global__ void sums(const float* x, const float* w, float* out, int n, int k) {
    __shared__ float held[32];
    int i = blockIdx.x * 128 + threadIdx.x, here = min(128, n - blockIdx.x * 128);
    if (i >= n) return;
    float sum[32] = {};
    for (int row = 0; row < k; row++) {
        for (int j = threadIdx.x; j < 32; j += here) held[j] = w[row * 32 + j];
        __syncthreads();
        float v = x[row * n + i];
#pragma unroll
        for (int j = 0; j < 32; j++) sum[j] += held[j] * v;
        __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < 32; j++) out[j * n + i] = sum[j];
}
