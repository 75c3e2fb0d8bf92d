// A whole file: it launches its kernel itself, has a main, and a lambda marked __device__.
// launch: added<<<ceil_div(n, 256), 256>>>(x, y, out, n)
#include <cmath>
#include <cstdio>
#include <cuda_runtime.h>
#include <vector>

static constexpr int divided_up(int a, int b) { return (a + b - 1) / b; }

template <class Body>
__device__ void each(int n, Body body) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) body(i);
}

__global__ void added(const float* x, const float* y, float* out, int n) {
    each(n, [=] __device__(int i) {
        const float sum = x[i] + y[i];
        out[i] = std::isnan(sum) || sum > 0 ? sum : 0.0f;
    });
}

extern "C" void solve(const float* x, const float* y, float* out, int n) {
    added<<<divided_up(n, 256), 256>>>(x, y, out, n);
    cudaDeviceSynchronize();
}

int main() {
    std::vector<float> all(1000);
    printf("%zu }\n", all.size());
    return 0;
}
