// Inline PTX with a register and a predicate of its own, named without %.
// launch: add_relu<<<ceil_div(n, 256), 256>>>(x, y, out, n)

__device__ __forceinline__ float relu_of_sum(float a, float b) {
    float result;
    asm("{\n\t"
        ".reg .f32 t;\n\t"
        ".reg .pred below;\n\t"
        "add.rn.f32 t, %1, %2;\n\t"
        "setp.lt.f32 below, t, 0f00000000;\n\t"
        "selp.f32 %0, 0f00000000, t, below;\n\t"
        "}"
        : "=f"(result)
        : "f"(a), "f"(b));
    return result;
}

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = relu_of_sum(x[i], y[i]);
}
