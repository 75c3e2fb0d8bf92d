// Tiles of 32 x 32 by 256 threads, each of which makes 2 x 2 elements 16 apart.
// launch: matmul<<<(ceil_div(n, 32), ceil_div(m, 32)), (16, 16)>>>(a, b, c, m, n, k)

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[32][16], right[16][32];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
    float s00 = 0, s01 = 0, s10 = 0, s11 = 0;
    for (int from = 0; from < k; from += 16) {
        for (int h = 0; h < 32; h += 16) {
            left[y + h][x] = row + h < m && from + x < k ? a[(row + h) * k + from + x] : 0;
            right[y][x + h] = from + y < k && column + h < n ? b[(from + y) * n + column + h] : 0;
        }
        __syncthreads();
        for (int d = 0; d < 16; d++) {
            float l0 = left[y][d], l1 = left[y + 16][d], r0 = right[d][x], r1 = right[d][x + 16];
            s00 = fmaf(l0, r0, s00), s01 = fmaf(l0, r1, s01);
            s10 = fmaf(l1, r0, s10), s11 = fmaf(l1, r1, s11);
        }
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = s00;
    if (row < m && column + 16 < n) c[row * n + column + 16] = s01;
    if (row + 16 < m && column < n) c[(row + 16) * n + column] = s10;
    if (row + 16 < m && column + 16 < n) c[(row + 16) * n + column + 16] = s11;
}
