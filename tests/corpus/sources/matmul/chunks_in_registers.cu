// The next step's numbers wait in registers while this one is multiplied.
// launch: matmul<<<(ceil_div(n, 32), ceil_div(m, 32)), (32, 16)>>>(a, b, c, m, n, k)

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[32][33], right[32][32];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
    float sum[2] = {0, 0}, next_left[2], next_right[2];
    auto load = [&](int from) {
        for (int h = 0; h < 2; h++) {
            int r = row + 16 * h, d = from + y + 16 * h;
            next_left[h] = r < m && from + x < k ? a[r * k + from + x] : 0;
            next_right[h] = d < k && column < n ? b[d * n + column] : 0;
        }
    };
    load(0);
    for (int from = 0; from < k; from += 32) {
        for (int h = 0; h < 2; h++) left[y + 16 * h][x] = next_left[h], right[y + 16 * h][x] = next_right[h];
        __syncthreads();
        load(from + 32);
#pragma unroll
        for (int d = 0; d < 32; d++)
            for (int h = 0; h < 2; h++) sum[h] += left[y + 16 * h][d] * right[d][x];
        __syncthreads();
    }
    for (int h = 0; h < 2; h++)
        if (row + 16 * h < m && column < n) c[(row + 16 * h) * n + column] = sum[h];
}
