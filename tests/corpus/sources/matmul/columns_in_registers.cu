// A thread has 16 rows of one column: b goes to registers alone, a by shared memory, turned.
// launch: matmul<<<(ceil_div(n, 64), ceil_div(m, 16)), 64>>>(a, b, c, m, n, k)

extern "C" __global__ void __launch_bounds__(64) matmul(const float* __restrict__ a, const float* __restrict__ b,
                                                        float* __restrict__ c, int m, int n, int k) {
    __shared__ alignas(16) float left[16][20];
    const int t = threadIdx.x, column = blockIdx.x * 64 + t, top = blockIdx.y * 16;
    const bool is_there = column < n;
    float4 sum[4] = {};
    b += is_there ? column : 0;
    for (int from = 0; from < k; from += 16) {
        __syncthreads();
        for (int i = t; i < 256; i += 64) {
            int row = top + i / 16, depth = from + i % 16;
            left[i % 16][i / 16] = row < m && depth < k ? a[row * k + depth] : 0;
        }
        __syncthreads();
        for (int d = 0, end = min(16, k - from); d != end; ++d, b += n) {
            float v = is_there ? *b : 0;
            const float4* of = (const float4*)left[d];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                sum[i].x = fmaf(of[i].x, v, sum[i].x);
                sum[i].y = fmaf(of[i].y, v, sum[i].y);
                sum[i].z = fmaf(of[i].z, v, sum[i].z);
                sum[i].w = fmaf(of[i].w, v, sum[i].w);
            }
        }
    }
    float all[16];
    memcpy(all, sum, sizeof all);
    if (is_there)
        for (int i = 0; i < 16 && top + i < m; i++) c[(top + i) * n + column] = all[i];
}
