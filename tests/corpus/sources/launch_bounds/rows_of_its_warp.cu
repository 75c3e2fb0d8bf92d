// Each warp keeps weights for itself, two rows in turns, so that one __syncwarp a row is enough.
// launch: sums<<<ceil_div(n, 128), 128>>>(x, w, out, n, k)

extern "C" __global__ void __launch_bounds__(128, 4) sums(const float* x, const float* w, float* out, int n, int k) {
    __shared__ alignas(16) float weights[4][2][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, i = blockIdx.x * 128 + threadIdx.x;
    float sum[32] = {};
    float next = w[lane];
    for (int row = 0; row < k; row++) {
        float(&mine)[32] = weights[warp][row & 1];
        mine[lane] = next;
        float v = i < n ? x[(size_t)row * n + i] : 0;
        if (row + 1 < k) next = w[(row + 1) * 32 + lane];
        // who still reads the other row has not yet come to the barrier before it is written
        __syncwarp();
#pragma unroll
        for (int j = 0; j < 32; j++) sum[j] += mine[j] * v;
    }
    if (i < n)
#pragma unroll
        for (int j = 0; j < 32; j++) out[(size_t)j * n + i] = sum[j];
}
