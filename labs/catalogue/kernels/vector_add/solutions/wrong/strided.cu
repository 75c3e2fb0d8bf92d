// launch: add_relu<<<1, 256>>>(x, y, out, n)

// right, but neighbours in a warp touch elements that lie far from each other
extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int each = (n + blockDim.x - 1) / blockDim.x;
    int first = threadIdx.x * each;
    for (int i = first; i < first + each && i < n; i++) {
        float sum = x[i] + y[i];
        out[i] = sum < 0 ? 0 : sum;
    }
}
