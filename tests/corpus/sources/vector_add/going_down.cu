// From the end to the begin by goto and do, with an unsigned counter that ends at 0.
// launch: add_relu<<<3, (32, 3)>>>(x, y, out, n)

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    const unsigned step = gridDim.x * 96u;
    unsigned left = blockIdx.x * 96u + threadIdx.y * 32u + threadIdx.x;
    left = left < n ? (n - 1u - left) / step + 1u : 0u;
    unsigned i = n - 1u - (blockIdx.x * 96u + threadIdx.y * 32u + threadIdx.x);
    float sum;
    if (left == 0) goto end;
    do {
        sum = x[i] + y[i];
        if (!(sum < 0)) goto store;
        sum = 0;
    store:
        out[i] = sum;
        i -= step;
    } while (--left);
end:;
}
