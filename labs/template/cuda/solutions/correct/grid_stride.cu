// launch: scale<<<min(ceil_div(n, 128), 8), 128>>>(x, factor, out, n)

extern "C" __global__ void scale(const float* x, float factor, float* out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        out[i] = factor * x[i];
    }
}
