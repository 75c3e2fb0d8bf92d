// A table in constant memory says how rows alternate: all by 1, so nothing changes.
// launch: sums<<<ceil_div(n, 128), 128>>>(x, w, out, n, k)

__constant__ float factors[64] = {
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

extern "C" __global__ void sums(const float* x, const float* w, float* out, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum[32] = {};
    for (int row = 0; row < k; row++) {
        float v = x[row * n + i] * factors[row % 64];
#pragma unroll
        for (int j = 0; j < 32; j++) sum[j] += w[row * 32 + j] * v;
    }
#pragma unroll
    for (int j = 0; j < 32; j++) out[j * n + i] = sum[j];
}
