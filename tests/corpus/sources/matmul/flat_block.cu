// A block of one side, a turned tile of a, and 4 x 4 elements a thread as outer products.
// launch: matmul<<<(ceil_div(n, 64), ceil_div(m, 64)), 256>>>(a, b, c, m, n, k)

extern "C" __global__ void __launch_bounds__(256) matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[16][65], right[16][64];
    int t = threadIdx.x, top = blockIdx.y * 64, first = blockIdx.x * 64, y = t / 16, x = t % 16;
    float sum[4][4] = {};
    for (int from = 0; from < k; from += 16) {
#pragma unroll
        for (int e = t; e < 1024; e += 256) {
            int i = e / 16, d = e % 16;
            left[d][i] = top + i < m && from + d < k ? a[(top + i) * k + from + d] : 0.0f;
            i = e % 64, d = e / 64;
            right[d][i] = first + i < n && from + d < k ? b[(from + d) * n + first + i] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int d = 0; d < 16; d++)
#pragma unroll
            for (int i = 0; i < 16; i++) sum[i / 4][i % 4] += left[d][y + 16 * (i / 4)] * right[d][x + 16 * (i % 4)];
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
        int row = top + y + 16 * (i / 4), column = first + x + 16 * (i % 4);
        if (row < m && column < n) c[row * n + column] = sum[i / 4][i % 4];
    }
}
