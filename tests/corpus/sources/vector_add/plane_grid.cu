// A grid of two sides, where x is short, for an index that is put together from four parts.
// launch: add_relu<<<(32, ceil_div(n, 4096)), (64, 2)>>>(x, y, out, n)

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int block = blockIdx.y * gridDim.x + blockIdx.x;
    int thread = threadIdx.y * blockDim.x + threadIdx.x;
    int i = block * (blockDim.x * blockDim.y) + thread;
    if (i < n) {
        float sum = x[i] + y[i];
        out[i] = sum < 0 ? 0 : sum;
    }
}
