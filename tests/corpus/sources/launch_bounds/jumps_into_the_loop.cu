// Rows go four by four, and a switch jumps into the loop for those that are left over.
// launch: sums<<<ceil_div(n, 96), 96>>>(x, w, out, n, k)

#define ROW                                                              \
    {                                                                    \
        float v = *x;                                                    \
        _Pragma("unroll") for (int j = 0; j < 32; j++) sum[j] += w[j] * v; \
        x += n, w += 32;                                                 \
    }

extern "C" __global__ void __launch_bounds__(96) sums(const float* __restrict__ x, const float* __restrict__ w,
                                                      float* __restrict__ out, int n, int k) {
    int i = blockIdx.x * 96 + threadIdx.x;
    if (i >= n) return;
    float sum[32] = {};
    x += i;
    int rounds = (k + 3) / 4;
    switch (k % 4) {
        do {
            case 0: ROW
            case 3: ROW
            case 2: ROW
            case 1: ROW
        } while (--rounds > 0);
    }
#pragma unroll
    for (int j = 0; j < 32; j++) out[(size_t)j * n + i] = sum[j];
}
