// launch: matmul<<<(ceil_div(n, 16), ceil_div(m, 16)), (16, 16)>>>(a, b, c, m, n, k)

// One thread for each element of c. Each product needs two numbers from global memory.
extern "C" __global__ void matmul(const float* a, const float* b, float* c,
                                  int m, int n, int k) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}
