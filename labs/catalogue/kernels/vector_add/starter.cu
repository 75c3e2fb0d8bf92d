// launch: add_relu<<<1, 256>>>(x, y, out, n)

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int i = threadIdx.x;
    // One block writes 256 elements. What about the others, and where does x end?
    out[i] = x[i] + y[i];
}
