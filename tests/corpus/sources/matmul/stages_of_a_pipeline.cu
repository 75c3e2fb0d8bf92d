// cuda::pipeline of a thread's own, two stages deep, fills tiles by memcpy_async.
// launch: matmul<<<(ceil_div(n, 32), ceil_div(m, 32)), (32, 16)>>>(a, b, c, m, n, k)

#include <cuda/pipeline>

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[2][32][32], right[2][32][32];
    auto pipe = cuda::make_pipeline();
    const int x = threadIdx.x, y = threadIdx.y, top = blockIdx.y * 32, column = blockIdx.x * 32 + x;
    auto fill = [&](int from, int stage) {
        pipe.producer_acquire();
        for (int i = y; i < 32; i += 16) {
            if (top + i < m && from + x < k)
                cuda::memcpy_async(&left[stage][i][x], &a[(top + i) * k + from + x], sizeof(float), pipe);
            else
                left[stage][i][x] = 0;
            if (from + i < k && column < n)
                cuda::memcpy_async(&right[stage][i][x], &b[(from + i) * n + column], sizeof(float), pipe);
            else
                right[stage][i][x] = 0;
        }
        pipe.producer_commit();
    };
    float sum[2] = {};
    int stage = 0;
    fill(0, 0);
    for (int from = 0; from < k; from += 32, stage ^= 1) {
        bool has_more = from + 32 < k;
        if (has_more) fill(from + 32, stage ^ 1);
        if (has_more)
            cuda::pipeline_consumer_wait_prior<1>(pipe);
        else
            cuda::pipeline_consumer_wait_prior<0>(pipe);
        __syncthreads();
        for (int d = 0; d < 32; d++)
            for (int i = 0; i < 2; i++) sum[i] += left[stage][y + 16 * i][d] * right[stage][d][x];
        pipe.consumer_release();
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        if (top + y + 16 * i < m && column < n) c[(top + y + 16 * i) * n + column] = sum[i];
}
