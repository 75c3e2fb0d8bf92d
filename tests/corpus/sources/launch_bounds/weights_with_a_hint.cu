// Weights by ld.global.nc.v4 with a hint to keep them, x by one not to; PTX's own vector registers.
// launch: sums<<<(1, ceil_div(n, 64)), (16, 4)>>>(x, w, out, n, k)

__device__ float4 kept(const float* p) {
    float4 v;
    asm("ld.global.nc.L1::evict_last.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
        : "l"(p));
    return v;
}
__device__ float once(const float* p, bool is_there) {
    float v;
    asm("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\tmov.f32 %0, 0f00000000;\n\t"
        "@p ld.global.nc.L1::no_allocate.f32 %0, [%1];\n\t}"
        : "=&f"(v)
        : "l"(p), "r"((int)is_there));
    return v;
}

extern "C" __global__ void __launch_bounds__(64) sums(const float* x, const float* w, float* out, int n, int k) {
    int i = blockIdx.y * 64 + threadIdx.y * 16 + threadIdx.x;
    float sum[8][4] = {};
    for (int row = 0; row < k; row++) {
        float v = once(x + (size_t)row * n + i, i < n);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float4 f = kept(w + row * 32 + j * 4);
            sum[j][0] += f.x * v, sum[j][1] += f.y * v, sum[j][2] += f.z * v, sum[j][3] += f.w * v;
        }
    }
    if (i < n)
#pragma unroll
        for (int j = 0; j < 32; j++) out[(size_t)j * n + i] = sum[j / 4][j % 4];
}
