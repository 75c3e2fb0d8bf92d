// Each lane holds one weight of the row, and all get it by a shuffle.
// launch: sums<<<ceil_div(n, 256), 256>>>(x, w, out, n, k)

extern "C" __global__ void sums(const float* x, const float* w, float* out, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    float sum[32] = {};
    for (int row = 0; row < k; row++) {
        float mine = w[row * 32 + lane], v = i < n ? x[row * n + i] : 0;
#pragma unroll
        for (int j = 0; j < 32; j++) sum[j] += __shfl_sync(0xffffffff, mine, j) * v;
    }
#pragma unroll
    for (int j = 0; j < 32; j++)
        if (i < n) out[j * n + i] = sum[j];
}
