// A grid of at most 4096 blocks strides over n, with 64-bit indices.
// launch: add_relu<<<min(ceil_div(n, 256), 4096), 256>>>(x, y, out, n)

extern "C" __global__ void add_relu(const float* __restrict__ x, const float* __restrict__ y,
                                    float* __restrict__ out, int n) {
    size_t step = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        float sum = x[i] + y[i];
        out[i] = sum < 0.0f ? 0.0f : sum;
    }
}
