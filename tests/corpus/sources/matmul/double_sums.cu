// Sums in double, rounded once, by a grid of tiles that strides.
// launch: matmul<<<min(4, ceil_div(n, 32) * ceil_div(m, 32)), (32, 32)>>>(a, b, c, m, n, k)

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[32][32], right[32][32];
    int x = threadIdx.x, y = threadIdx.y, across = (n + 31) / 32, tiles = across * ((m + 31) / 32);
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int row = tile / across * 32 + y, column = tile % across * 32 + x;
        double sum = 0;
        for (int from = 0; from < k; from += 32) {
            left[y][x] = row < m && from + x < k ? a[row * k + from + x] : 0;
            right[y][x] = from + y < k && column < n ? b[(from + y) * n + column] : 0;
            __syncthreads();
            for (int d = 0; d < 32 && from + d < k; d++) sum += (double)left[y][d] * right[d][x];
            __syncthreads();
        }
        if (row < m && column < n) c[row * n + column] = sum;
    }
}
