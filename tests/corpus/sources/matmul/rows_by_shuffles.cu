// No shared memory: a lane holds 16 of a row of a, which the warp gets by shuffles.
// launch: matmul<<<(ceil_div(n, 32), ceil_div(m, 32)), 128>>>(a, b, c, m, n, k)

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    int lane = threadIdx.x % 32, column = blockIdx.x * 32 + lane;
    int top = blockIdx.y * 32 + threadIdx.x / 32 * 8;
    float sum[8] = {};
    for (int from = 0; from < k; from += 32) {
        float mine[8];
#pragma unroll
        for (int i = 0; i < 8; i++) mine[i] = top + i < m && from + lane < k ? a[(top + i) * k + from + lane] : 0;
        for (int d = 0; d < 32; d++) {
            float r = from + d < k && column < n ? b[(from + d) * n + column] : 0;
#pragma unroll
            for (int i = 0; i < 8; i++) sum[i] += __shfl_sync(0xffffffff, mine[i], d) * r;
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (top + i < m && column < n) c[(top + i) * n + column] = sum[i];
}
