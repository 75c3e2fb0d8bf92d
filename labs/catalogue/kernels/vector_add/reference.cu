// launch: add_relu<<<ceil_div(n, 1024), 256>>>(x, y, out, n)

__device__ float add_one(float x, float y) {
    float sum = x + y;
    return sum < 0 ? 0 : sum;
}

// Each thread has four neighbours: one access of 16 bytes keeps more of them on the way.
extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    // such an access must begin at a multiple of 16 bytes, which x, y and out need not do
    bool is_aligned = (((size_t)x | (size_t)y | (size_t)out) & 15) == 0;
    if (is_aligned && i + 4 <= n) {
        float4 a = *(const float4*)(x + i), b = *(const float4*)(y + i);
        *(float4*)(out + i) = make_float4(add_one(a.x, b.x), add_one(a.y, b.y),
                                          add_one(a.z, b.z), add_one(a.w, b.w));
        return;
    }
    for (int j = i; j < i + 4 && j < n; j++) out[j] = add_one(x[j], y[j]);
}
