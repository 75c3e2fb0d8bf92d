// launch: matmul<<<(ceil_div(n, 16), ceil_div(m, 16)), (16, 16)>>>(a, b, c, m, n, k)

extern "C" __global__ void matmul(const float* a, const float* b, float* c,
                                  int m, int n, int k) {
    __shared__ float left[16][16], right[16][16];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    float sum = 0;
    for (int from = 0; from < k; from += 16) {
        left[y][x] = row < m && from + x < k ? a[row * k + from + x] : 0;
        right[y][x] = column < n && from + y < k ? b[(from + y) * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < 16; i++) {
            float product = left[y][i] * right[i][x];
            unsigned short half;
            asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(product));
            asm("cvt.f32.f16 %0, %1;" : "=f"(product) : "h"(half));
            sum += product;
        }
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
