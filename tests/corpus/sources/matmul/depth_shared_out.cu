// k is shared out between two blocks, which add to c by atomics; a launch before clears it.
// launch: clear<<<ceil_div(m * n, 256), 256>>>(c, m * n)
// launch: matmul<<<(ceil_div(n, 32), ceil_div(m, 32), 2), (32, 32)>>>(a, b, c, m, n, k)

extern "C" __global__ void clear(float* c, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) c[i] = 0;
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[32][32], right[32][32];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
    int half = (k + 1) / 2, begin = blockIdx.z * half, end = min(k, begin + half);
    float sum = 0;
    for (int from = begin; from < end; from += 32) {
        left[y][x] = row < m && from + x < end ? a[row * k + from + x] : 0;
        right[y][x] = from + y < end && column < n ? b[(from + y) * n + column] : 0;
        __syncthreads();
        for (int d = 0; d < 32; d++) sum += left[y][d] * right[d][x];
        __syncthreads();
    }
    if (row < m && column < n) atomicAdd(&c[row * n + column], sum);
}
