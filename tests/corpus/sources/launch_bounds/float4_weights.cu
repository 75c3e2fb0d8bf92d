// Weights four at a time: a row of 32 begins at 16 bytes wherever w does, and that is asked.
// launch: sums<<<ceil_div(n, 64), 64>>>(x, w, out, n, k)

extern "C" __global__ void __launch_bounds__(64, 8) sums(const float* x, const float* w, float* out, int n, int k) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    bool is_aligned = ((size_t)w & 15) == 0;
    float4 sum[8];
    for (int j = 0; j < 8; j++) sum[j] = make_float4(0, 0, 0, 0);
    for (int row = 0; row < k; row++, w += 32) {
        float v = x[(size_t)row * n + i];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float4 f = is_aligned ? ((const float4*)w)[j] : make_float4(w[4 * j], w[4 * j + 1], w[4 * j + 2], w[4 * j + 3]);
            sum[j].x += f.x * v, sum[j].y += f.y * v, sum[j].z += f.z * v, sum[j].w += f.w * v;
        }
    }
#pragma unroll
    for (int j = 0; j < 8; j++) {
        float* to = out + (size_t)(4 * j) * n + i;
        to[0] = sum[j].x, to[n] = sum[j].y, to[2 * n] = sum[j].z, to[3 * n] = sum[j].w;
    }
}
