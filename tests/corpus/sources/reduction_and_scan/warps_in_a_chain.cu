// Within a block warp hands on to warp: flags in shared memory, released and acquired.
// launch: scan<<<1, 512>>>(x, k, total, prefix, n)

__device__ void publish(int* flag) {
    unsigned at = (unsigned)__cvta_generic_to_shared(flag);
    asm volatile("st.release.cta.shared.s32 [%0], 1;" ::"r"(at) : "memory");
}
__device__ bool is_published(const int* flag) {
    int found;
    unsigned at = (unsigned)__cvta_generic_to_shared(flag);
    asm volatile("ld.acquire.cta.shared.s32 %0, [%1];" : "=r"(found) : "r"(at) : "memory");
    return found != 0;
}

extern "C" __global__ void scan(const float* x, const int* k, float* total, int* prefix, int n) {
    __shared__ int flags[16], ends[16];
    __shared__ float sums[16];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) flags[warp] = 0;
    __syncthreads();
    int length = (n + 511) / 512 * 32, begin = min(n, warp * length), end = min(n, begin + length);
    int own = 0;
    float part = 0;
    for (int i = begin + lane; i < end; i += 32) own += k[i], part += x[i];
    own = __reduce_add_sync(~0u, own);
    for (int d = 16; d > 0; d /= 2) part += __shfl_down_sync(~0u, part, d);
    int before = 0;
    if (lane == 0) {
        if (warp > 0) {
            while (!is_published(&flags[warp - 1])) {}
            before = ends[warp - 1];
            part += sums[warp - 1];
        }
        ends[warp] = before + own;
        sums[warp] = part;
        publish(&flags[warp]);
        if (warp == 15) *total = part;
    }
    before = __shfl_sync(~0u, before, 0);
    for (int i = begin + lane; __any_sync(~0u, i < end); i += 32) {
        int v = i < end ? k[i] : 0;
        for (int d = 1; d < 32; d <<= 1) {
            int below = __shfl_up_sync(~0u, v, d);
            if (lane >= d) v += below;
        }
        if (i < end) prefix[i] = before + v;
        before += __shfl_sync(~0u, v, 31);
    }
}
