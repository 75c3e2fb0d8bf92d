// C++17: a fold over a parameter pack, if constexpr, and an enum class as an argument.
// launch: add_relu<<<ceil_div(n, 256), 256>>>(x, y, out, n)

enum class After { nothing, relu };

template <After after, class... Numbers>
__device__ constexpr float combined(Numbers... numbers) {
    float sum = (numbers + ...);
    if constexpr (after == After::relu) return sum < 0 ? 0 : sum;
    return sum;
}

namespace {
__device__ int place() { return blockIdx.x * blockDim.x + threadIdx.x; }
}

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    if (int i = place(); i < n) out[i] = combined<After::relu>(x[i], y[i]);
}
