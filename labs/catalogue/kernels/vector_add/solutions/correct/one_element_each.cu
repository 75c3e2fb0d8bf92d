// launch: add_relu<<<ceil_div(n, 256), 256>>>(x, y, out, n)

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = x[i] + y[i];
    out[i] = sum < 0 ? 0 : sum;
}
