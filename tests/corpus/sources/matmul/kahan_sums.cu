// Sums with a compensation for what each addition rounds off, in tiles of dynamic memory.
// launch: matmul<<<(ceil_div(n, 32), ceil_div(m, 32)), (32, 32), 8192>>>(a, b, c, m, n, k)

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    extern __shared__ float tiles[];
    float *left = tiles, *right = tiles + 1024;
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
    float sum = 0, lost = 0;
    for (int from = 0; from < k; from += 32) {
        left[32 * y + x] = row < m && from + x < k ? a[row * k + from + x] : 0;
        right[32 * y + x] = from + y < k && column < n ? b[(from + y) * n + column] : 0;
        __syncthreads();
        for (int d = 0; d < 32; d++) {
            float term = __fmaf_rn(left[32 * y + d], right[32 * d + x], -lost);
            float larger = __fadd_rn(sum, term);
            lost = __fsub_rn(__fsub_rn(larger, sum), term);
            sum = larger;
        }
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
