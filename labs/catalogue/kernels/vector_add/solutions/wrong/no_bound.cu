// launch: add_relu<<<ceil_div(n, 256), 256>>>(x, y, out)

extern "C" __global__ void add_relu(const float* x, const float* y, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = x[i] + y[i];
    out[i] = sum < 0 ? 0 : sum;
}
