// launch: matmul<<<(ceil_div(n, 128), ceil_div(m, 128)), (16, 16)>>>(a, b, c, m, n, k)

// Wider tiles than 64 x 64: each of 256 threads makes 8 x 8 elements, 16 apart from each
// other, so that 16 reads of shared memory serve 64 products.
#define TILE 128
#define DEPTH 8
#define EACH 8

extern "C" __global__ void __launch_bounds__(256, 2)
matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[DEPTH][TILE + 4], right[DEPTH][TILE];
    int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
    int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    float sum[EACH][EACH] = {};
    for (int from = 0; from < k; from += DEPTH) {
        for (int i = thread; i < TILE * DEPTH; i += 256) {
            int row = first_row + i / DEPTH, depth = from + i % DEPTH;
            left[i % DEPTH][i / DEPTH] = row < m && depth < k ? a[row * k + depth] : 0;
            int column = first_column + i % TILE;
            depth = from + i / TILE;
            right[i / TILE][i % TILE] = depth < k && column < n ? b[depth * n + column] : 0;
        }
        __syncthreads();
        for (int d = 0; d < DEPTH; d++) {
            float of_a[EACH], of_b[EACH];
            for (int e = 0; e < EACH; e++) of_a[e] = left[d][y + 16 * e];
            for (int e = 0; e < EACH; e++) of_b[e] = right[d][x + 16 * e];
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++) sum[i][j] += of_a[i] * of_b[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            int row = first_row + y + 16 * i, column = first_column + x + 16 * j;
            if (row < m && column < n) c[row * n + column] = sum[i][j];
        }
}
