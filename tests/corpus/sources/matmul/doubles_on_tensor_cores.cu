// Tensor cores multiply in FP64, in which products of floats are exact, and their sums nearly.
// launch: matmul<<<(ceil_div(n, 32), ceil_div(m, 32)), 128>>>(a, b, c, m, n, k)

__device__ void multiply(double (&d)[2], double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d[0]), "+d"(d[1])
        : "d"(a), "d"(b));
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[32][36], right[32][36];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, top = blockIdx.y * 32, side = blockIdx.x * 32;
    // each warp has 8 rows of all 32 columns
    double sum[4][2] = {};
    for (int from = 0; from < k; from += 32) {
        for (int i = warp; i < 32; i += 4) {
            left[i][lane] = top + i < m && from + lane < k ? a[(top + i) * k + from + lane] : 0;
            right[i][lane] = from + i < k && side + lane < n ? b[(from + i) * n + side + lane] : 0;
        }
        __syncthreads();
        for (int d = 0; d < 32; d += 4)
            for (int j = 0; j < 4; j++)
                multiply(sum[j], left[8 * warp + lane / 4][d + lane % 4], right[d + lane % 4][8 * j + lane / 4]);
        __syncthreads();
    }
    int row = top + 8 * warp + lane / 4;
    for (int j = 0; j < 4; j++)
        for (int e = 0; e < 2; e++) {
            int column = side + 8 * j + lane % 4 * 2 + e;
            if (row < m && column < n) c[row * n + column] = (float)sum[j][e];
        }
}
