// Warps share out the depth of a tile: each makes all 32 x 32 sums, which atomics of shared memory join.
// launch: matmul<<<(ceil_div(n, 32), ceil_div(m, 32)), 128>>>(a, b, c, m, n, k)

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[32][33], right[32][32], all[32][32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, top = blockIdx.y * 32, side = blockIdx.x * 32;
    float sum[32] = {};
    for (int i = threadIdx.x; i < 1024; i += 128) (&all[0][0])[i] = 0;
    for (int from = 0; from < k; from += 32) {
        for (int i = warp; i < 32; i += 4) {
            left[lane][i] = top + i < m && from + lane < k ? a[(top + i) * k + from + lane] : 0;
            right[i][lane] = from + i < k && side + lane < n ? b[(from + i) * n + side + lane] : 0;
        }
        __syncthreads();
        for (int d = warp; d < min(32, k - from); d += 4) {
            float v = right[d][lane];
#pragma unroll
            for (int i = 0; i < 32; i++) sum[i] += left[d][i] * v;
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 32; i++) atomicAdd(&all[i][lane], sum[i]);
    __syncthreads();
    for (int i = warp; i < 32 && top + i < m; i += 4)
        if (side + lane < n) c[(top + i) * n + side + lane] = all[i][lane];
}
