// Pairs where all three begin at a multiple of 8 bytes, else two floats a block apart.
// launch: add_relu<<<ceil_div(n, 512), 256>>>(x, y, out, n)

__device__ float relu(float v) { return v < 0 ? 0 : v; }

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    bool is_aligned = ((size_t)x % 8 | (size_t)y % 8 | (size_t)out % 8) == 0;
    int base = blockIdx.x * 512;
    if (is_aligned) {
        int i = base + 2 * threadIdx.x;
        if (i + 1 < n) {
            float2 a = *reinterpret_cast<const float2*>(x + i);
            float2 b = *reinterpret_cast<const float2*>(y + i);
            *reinterpret_cast<float2*>(out + i) = make_float2(relu(a.x + b.x), relu(a.y + b.y));
        } else if (i < n) {
            out[i] = relu(x[i] + y[i]);
        }
    } else {
        for (int i = base + threadIdx.x; i < min(base + 512, n); i += 256) out[i] = relu(x[i] + y[i]);
    }
}
