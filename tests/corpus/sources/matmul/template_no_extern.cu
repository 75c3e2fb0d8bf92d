// A template with function objects for both matrices, and a kernel without extern "C".
// launch: matmul<<<(ceil_div(n, 32), ceil_div(m, 32)), 1024>>>(a, b, c, m, n, k)

struct Matrix {
    const float* first;
    int rows, columns;
    __device__ float operator()(int row, int column) const {
        return row < rows && column < columns ? first[row * columns + column] : 0.0f;
    }
};

template <int SIDE, class A, class B>
__device__ float product(A a, B b, int row, int column, int k) {
    __shared__ float left[SIDE][SIDE + 1], right[SIDE][SIDE + 1];
    int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    float sum = 0;
    for (int from = 0; from < k; from += SIDE) {
        left[y][x] = a(row, from + x);
        right[y][x] = b(from + y, column);
        __syncthreads();
#pragma unroll
        for (int d = 0; d < SIDE; d++) sum = __fmaf_rn(left[y][d], right[d][x], sum);
        __syncthreads();
    }
    return sum;
}

__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    int row = blockIdx.y * 32 + threadIdx.x / 32, column = blockIdx.x * 32 + threadIdx.x % 32;
    float sum = product<32>(Matrix{a, m, k}, Matrix{b, k, n}, row, column, k);
    if (row < m && column < n) c[row * n + column] = sum;
}
