// A grid of three blocks strides over the columns, with pointers that are moved along.
// launch: sums<<<min(3, ceil_div(n, 128)), 128>>>(x, w, out, n, k)

extern "C" __global__ void sums(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ out, int n, int k) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float sum[32];
#pragma unroll
        for (float& each : sum) each = 0;
        const float* weight = w;
        for (const float *v = x + i, *end = x + (size_t)k * n; v < end; v += n, weight += 32)
#pragma unroll
            for (int j = 0; j < 32; j++) sum[j] += weight[j] * *v;
        float* to = out + i;
#pragma unroll
        for (int j = 0; j < 32; j++, to += n) *to = sum[j];
    }
}
