// launch: matmul<<<(ceil_div(n, 128), ceil_div(m, 128)), 256>>>(a, b, c, m, n, k)

// A block makes a tile of 128 x 128 of c, 8 of k at a time. Each of its 256 threads makes
// 8 x 8 elements, four neighbours and four that are 64 further on, in both directions, so
// that four numbers at a time come from shared memory: 4 reads for 64 products.
#define TILE 128
#define DEPTH 8

// what this thread brings of the next step, zero beyond the edges
__device__ void fetch(float* of_a, float* of_b, const float* a, const float* b,
                      int m, int n, int k, int from) {
    for (int e = 0; e < 4; e++) {
        int i = threadIdx.x + 256 * e;
        int row = blockIdx.y * TILE + i / DEPTH, depth = from + i % DEPTH;
        of_a[e] = row < m && depth < k ? a[row * k + depth] : 0;
        int column = blockIdx.x * TILE + i % TILE;
        depth = from + i / TILE;
        of_b[e] = depth < k && column < n ? b[depth * n + column] : 0;
    }
}

extern "C" __global__ void __launch_bounds__(256, 2)
matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    // two of each: one is read while the next is written
    __shared__ __align__(16) float left[2][DEPTH][TILE + 4];
    __shared__ __align__(16) float right[2][DEPTH][TILE];
    int x = threadIdx.x % 16 * 4, y = threadIdx.x / 16 * 4, side = 0;
    float sum[8][8] = {}, of_a[4], of_b[4];
    fetch(of_a, of_b, a, b, m, n, k, 0);
    for (int from = 0; from < k; from += DEPTH) {
        for (int e = 0; e < 4; e++) {
            int i = threadIdx.x + 256 * e;
            left[side][i % DEPTH][i / DEPTH] = of_a[e];
            right[side][i / TILE][i % TILE] = of_b[e];
        }
        __syncthreads();
        // on their way while the products are computed
        if (from + DEPTH < k) fetch(of_a, of_b, a, b, m, n, k, from + DEPTH);
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            float4 part[4] = {*(float4*)&left[side][d][y], *(float4*)&left[side][d][64 + y],
                              *(float4*)&right[side][d][x], *(float4*)&right[side][d][64 + x]};
            float* rows = (float*)part;
            float* columns = rows + 8;
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 8; j++) sum[i][j] += rows[i] * columns[j];
        }
        side = 1 - side;
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) {
            int row = blockIdx.y * TILE + i / 4 * 64 + y + i % 4;
            int column = blockIdx.x * TILE + j / 4 * 64 + x + j % 4;
            if (row < m && column < n) c[row * n + column] = sum[i][j];
        }
}
