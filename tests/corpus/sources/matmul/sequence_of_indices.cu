// No loop over the depth of a tile: a fold over a sequence of indices, on views that are classes.
// launch: matmul<<<(ceil_div(m, 16), ceil_div(n, 32)), (16, 16)>>>(a, b, c, m, n, k)

#include <cuda/std/utility>

struct View {
    const float* begin;
    int rows, columns;
    __device__ float operator()(int row, int column) const {
        return row < rows && column < columns ? begin[row * columns + column] : 0.f;
    }
};

template <int... DEPTH>
__device__ float2 added(const float (&left)[16], const float2 (&right)[16][16], int x, float2 sum,
                        cuda::std::integer_sequence<int, DEPTH...>) {
    ((sum.x = __fmaf_rn(left[DEPTH], right[DEPTH][x].x, sum.x),
      sum.y = __fmaf_rn(left[DEPTH], right[DEPTH][x].y, sum.y)),
     ...);
    return sum;
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[16][16];
    __shared__ float2 right[16][16];
    const View of_a{a, m, k}, of_b{b, k, n};
    const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.x * 16 + y, column = blockIdx.y * 32 + x;
    float2 sum = {};
    // from the far end of k to its begin
    for (int from = (k - 1) / 16 * 16; from >= 0; from -= 16) {
        left[y][x] = of_a(row, from + x);
        right[y][x] = make_float2(of_b(from + y, column), of_b(from + y, column + 16));
        __syncthreads();
        sum = added(left[y], right, x, sum, cuda::std::make_integer_sequence<int, 16>{});
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum.x;
    if (row < m && column + 16 < n) c[row * n + column + 16] = sum.y;
}
