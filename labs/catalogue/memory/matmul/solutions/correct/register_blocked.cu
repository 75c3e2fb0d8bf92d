// launch: matmul<<<(ceil_div(n, 64), ceil_div(m, 64)), (16, 16)>>>(a, b, c, m, n, k)

// A block makes a tile of 64 x 64 of c. Each of its 256 threads makes 4 x 4 elements, 16
// apart from each other, so that neighbours read and write side by side.
#define TILE 64
#define DEPTH 16
#define EACH 4

extern "C" __global__ void matmul(const float* a, const float* b, float* c,
                                  int m, int n, int k) {
    __shared__ float left[DEPTH][TILE + 1];
    __shared__ float right[DEPTH][TILE];
    int x = threadIdx.x, y = threadIdx.y, thread = y * 16 + x;
    int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    float sum[EACH][EACH] = {};
    for (int from = 0; from < k; from += DEPTH) {
        for (int i = thread; i < TILE * DEPTH; i += 256) {
            int row = first_row + i / DEPTH, depth = from + i % DEPTH;
            left[i % DEPTH][i / DEPTH] = row < m && depth < k ? a[row * k + depth] : 0;
        }
        for (int i = thread; i < TILE * DEPTH; i += 256) {
            int depth = from + i / TILE, column = first_column + i % TILE;
            right[i / TILE][i % TILE] = depth < k && column < n ? b[depth * n + column] : 0;
        }
        __syncthreads();
        for (int d = 0; d < DEPTH; d++) {
            float of_a[EACH], of_b[EACH];
            for (int e = 0; e < EACH; e++) of_a[e] = left[d][y + 16 * e];
            for (int e = 0; e < EACH; e++) of_b[e] = right[d][x + 16 * e];
            // 8 reads of shared memory for 16 products
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
