// A warp makes 32 x 8 elements from tiles of its own, with __syncwarp alone.
// launch: matmul<<<(ceil_div(n, 32), ceil_div(m, 32)), (32, 4)>>>(a, b, c, m, n, k)

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float lefts[4][8][32], rights[4][32][32];
    int lane = threadIdx.x, warp = threadIdx.y, column = blockIdx.x * 32 + lane, top = blockIdx.y * 32 + 8 * warp;
    float sum[8] = {};
    for (int from = 0; from < k; from += 32) {
        for (int i = 0; i < 8; i++) lefts[warp][i][lane] = top + i < m && from + lane < k ? a[(top + i) * k + from + lane] : 0;
        for (int d = 0; d < 32; d++) rights[warp][d][lane] = from + d < k && column < n ? b[(from + d) * n + column] : 0;
        __syncwarp();
        for (int d = 0; d < 32; d++)
            for (int i = 0; i < 8; i++) sum[i] += lefts[warp][i][d] * rights[warp][d][lane];
        __syncwarp();
    }
    for (int i = 0; i < 8; i++)
        if (top + i < m && column < n) c[(top + i) * n + column] = sum[i];
}
