// The kernel has no extern "C", so the compiler mangles its name.
// launch: add_relu<<<ceil_div(n, 128), 128>>>(x, y, out, n)

__global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = x[i] + y[i];
        out[i] = sum < 0 ? 0 : sum;
    }
}
