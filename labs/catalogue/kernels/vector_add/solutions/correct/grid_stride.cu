// launch: add_relu<<<min(ceil_div(n, 256), 4096), 256>>>(x, y, out, n)

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float sum = x[i] + y[i];
        out[i] = sum < 0 ? 0.0f : sum;
    }
}
