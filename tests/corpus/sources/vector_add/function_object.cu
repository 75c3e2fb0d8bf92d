// A template takes the operation as a function object, and NaN is asked for first.
// launch: add_relu<<<ceil_div(n, 256), 256>>>(x, y, out, n)

struct ReluOfSum {
    float floor;
    __device__ float operator()(float a, float b) const {
        float sum = a + b;
        return sum != sum ? sum : fmaxf(sum, floor);
    }
};

template <class Operation>
__device__ void transform(const float* a, const float* b, float* to, unsigned count, Operation f) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) to[at] = f(a[at], b[at]);
}

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    transform(x, y, out, n, ReluOfSum{0.0f});
}
