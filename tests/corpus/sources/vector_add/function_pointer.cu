// The operation is called through a pointer that is chosen when the kernel runs.
// launch: add_relu<<<ceil_div(n, 256), 256>>>(x, y, out, n)

typedef float (*Operation)(float, float);
__device__ __noinline__ float sum_only(float a, float b) { return a + b; }
__device__ __noinline__ float relu_of_sum(float a, float b) {
    float sum = a + b;
    return sum < 0 ? 0 : sum;
}

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Operation f = n > 0 ? relu_of_sum : sum_only;
    if (i < n) out[i] = f(x[i], y[i]);
}
