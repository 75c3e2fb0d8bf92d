// cuda::std: arrays, optional, minmax and bit_cast, as host code would have them.
// launch: add_relu<<<ceil_div(n, 256), 128>>>(x, y, out, n)

#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/cstdint>
#include <cuda/std/optional>

using Maybe = cuda::std::optional<float>;

__device__ Maybe sum_at(const float* x, const float* y, int i, int n) {
    if (i >= n) return cuda::std::nullopt;
    return x[i] + y[i];
}

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int first = blockIdx.x * 256 + threadIdx.x, i = first;
    cuda::std::array<Maybe, 2> sums{sum_at(x, y, first, n), sum_at(x, y, first + 128, n)};
    for (const Maybe& sum : sums) {
        if (sum.has_value()) {
            auto size = cuda::std::bit_cast<cuda::std::uint32_t>(*sum) & 0x7fffffffu;
            out[i] = *sum >= 0 || size > 0x7f800000u ? *sum : 0;
        }
        i += 128;
    }
}
