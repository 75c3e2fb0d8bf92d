// Shared memory by its own addresses, in inline PTX.
// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), (32, 8)>>>(x, out, w, h)

__device__ void put(unsigned to, float v) { asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(v) : "memory"); }
__device__ float got(unsigned from) {
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(from) : "memory");
    return v;
}

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    __shared__ float tile[32 * 33];
    unsigned base = (unsigned)__cvta_generic_to_shared(tile);
    int left = blockIdx.x * 32, top = blockIdx.y * 32, a = threadIdx.x;
    for (int r = threadIdx.y; r < 32; r += 8)
        if (top + r < h && left + a < w) put(base + 4 * (33 * r + a), x[(top + r) * w + left + a]);
    asm volatile("bar.sync 0;" ::: "memory");
    for (int r = threadIdx.y; r < 32; r += 8)
        if (left + r < w && top + a < h) out[(left + r) * h + top + a] = got(base + 4 * (33 * a + r));
}
