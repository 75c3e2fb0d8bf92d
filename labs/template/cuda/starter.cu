// launch: scale<<<1, 256>>>(x, factor, out, n)

extern "C" __global__ void scale(const float* x, float factor, float* out, int n) {
    int i = threadIdx.x;
    // One block has 256 threads. What about the other elements, and where does x end?
    out[i] = factor * x[i];
}
