// A ring of registers holds the next four numbers of x, whose places are known when it is unrolled.
// launch: sums<<<min(8, ceil_div(n, 128)), 128>>>(x, w, out, n, k)

struct Ring {
    float at[4];
    __device__ float& operator[](int row) { return at[row & 3]; }
};

extern "C" __global__ void __launch_bounds__(128, 4) sums(const float* x, const float* w, float* out, int n, int k) {
    for (long i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) {
        Ring ring;
        float sum[32];
        for (float& each : sum) each = 0;
        const float* ahead = x + i;
        for (int row = 0; row < 4; row++, ahead += n) ring[row] = row < k ? __ldcs(ahead) : 0;
        for (int begin = 0; begin < k; begin += 4) {
#pragma unroll
            for (int step = 0; step < 4; step++, ahead += n) {
                int row = begin + step;
                if (row >= k) break;
                float v = ring[step];
                if (row + 4 < k) ring[step] = __ldcs(ahead);
                const float4* of = reinterpret_cast<const float4*>(w + 32 * row);
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    float4 f = __ldg(of + j);
                    sum[4 * j] += f.x * v, sum[4 * j + 1] += f.y * v;
                    sum[4 * j + 2] += f.z * v, sum[4 * j + 3] += f.w * v;
                }
            }
        }
        float* to = out + i;
        for (float each : sum) *to = each, to += n;
    }
}
