// NVIDIA's own idiom: inline shfl whose predicate says whether a lane was in reach.
// launch: scan<<<1, 1024>>>(k, prefix, n)
// launch: sum<<<1, 1024>>>(x, total, n)

__device__ __forceinline__ int scan_of_warp(int v) {
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        asm volatile("{\n"
            "  .reg .s32 r0;\n"
            "  .reg .pred p;\n"
            "  shfl.sync.up.b32 r0|p, %0, %1, 0, 0xffffffff;\n"
            "  @p add.s32 %0, r0, %0;\n"
            "}"
            : "+r"(v) : "r"(d));
    }
    return v;
}

extern "C" __global__ void scan(const int* k, int* prefix, int n) {
    __shared__ int ends[32];
    int t = threadIdx.x, carried = 0;
    for (int first = 0; first < n; first += 1024) {
        int i = first + t, v = scan_of_warp(i < n ? k[i] : 0);
        if (t % 32 == 31) ends[t / 32] = v;
        __syncthreads();
        if (t < 32) ends[t] = scan_of_warp(ends[t]);
        __syncthreads();
        if (i < n) prefix[i] = carried + v + (t < 32 ? 0 : ends[t / 32 - 1]);
        carried += ends[31];
        __syncthreads();
    }
}

extern "C" __global__ void sum(const float* x, float* total, int n) {
    __shared__ float parts[32];
    float v = 0;
    for (int i = threadIdx.x; i < n; i += 1024) v += x[i];
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    v = parts[threadIdx.x];
    for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x == 0) *total = v;
}
