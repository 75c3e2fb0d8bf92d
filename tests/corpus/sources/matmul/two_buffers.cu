// Two buffers in turn, so that one barrier for each step is enough.
// launch: matmul<<<(ceil_div(n, 32), ceil_div(m, 32)), (32, 8)>>>(a, b, c, m, n, k)

__device__ void fill(float (*l)[32], float (*r)[32], const float* a, const float* b, int m, int n, int k, int from) {
    for (int i = threadIdx.y; i < 32; i += 8) {
        int row = blockIdx.y * 32 + i, column = blockIdx.x * 32 + threadIdx.x, depth = from + threadIdx.x;
        l[i][threadIdx.x] = row < m && depth < k ? a[row * k + depth] : 0;
        depth = from + i;
        r[i][threadIdx.x] = depth < k && column < n ? b[depth * n + column] : 0;
    }
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[2][32][32], right[2][32][32];
    float sum[4] = {0, 0, 0, 0};
    int side = 0;
    fill(left[0], right[0], a, b, m, n, k, 0);
    for (int from = 0; from < k; from += 32, side ^= 1) {
        __syncthreads();
        if (from + 32 < k) fill(left[side ^ 1], right[side ^ 1], a, b, m, n, k, from + 32);
        for (int d = 0; d < 32; d++)
            for (int i = 0; i < 4; i++) sum[i] += left[side][threadIdx.y + 8 * i][d] * right[side][d][threadIdx.x];
    }
    for (int i = 0; i < 4; i++) {
        int row = blockIdx.y * 32 + threadIdx.y + 8 * i, column = blockIdx.x * 32 + threadIdx.x;
        if (row < m && column < n) c[row * n + column] = sum[i];
    }
}
