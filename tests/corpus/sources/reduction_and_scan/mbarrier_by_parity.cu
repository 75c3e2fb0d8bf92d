// No __syncthreads but one: an mbarrier whose phases are told apart by their parity.
// scratch: sums int32[ceil_div(n, 256)]
// scratch: parts float32[ceil_div(n, 256)]
// launch: blocks<<<ceil_div(n, 256), 256>>>(x, k, prefix, sums, parts, n)
// launch: rest<<<ceil_div(n, 256), 256>>>(total, prefix, sums, parts, n)

__device__ void wait_for_all(unsigned barrier, unsigned& parity) {
    unsigned long long state;
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(barrier) : "memory");
    unsigned is_over = 0;
    while (!is_over)
        asm volatile("{\n\t.reg .pred over;\n\t"
                     "mbarrier.try_wait.parity.shared.b64 over, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, over;\n\t}"
                     : "=r"(is_over)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    parity ^= 1;
}

extern "C" __global__ void blocks(const float* x, const int* k, int* prefix, int* sums, float* parts, int n) {
    __shared__ unsigned long long place;
    __shared__ int s[256];
    __shared__ float f[256];
    unsigned barrier = (unsigned)__cvta_generic_to_shared(&place), parity = 0;
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 256;" ::"r"(barrier) : "memory");
    s[t] = i < n ? k[i] : 0;
    f[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        int v = t >= d ? s[t - d] : 0;
        float w = t < 256 - d ? f[t + d] : 0;
        wait_for_all(barrier, parity);
        s[t] += v;
        f[t] += w;
        wait_for_all(barrier, parity);
    }
    if (i < n) prefix[i] = s[t];
    if (t == 255) sums[blockIdx.x] = s[255];
    if (t == 0) parts[blockIdx.x] = f[0];
}

extern "C" __global__ void rest(float* total, int* prefix, const int* sums, const float* parts, int n) {
    int t = threadIdx.x, i = blockIdx.x * 256 + t, lane = t % 32, before = 0;
    for (int b = lane; b < blockIdx.x; b += 32) before += sums[b];
    before = __reduce_add_sync(~0u, before);
    if (i < n) prefix[i] += before;
    if (blockIdx.x || t >= 32) return;
    float sum = 0;
    for (int b = lane; b < gridDim.x; b += 32) sum += parts[b];
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) *total = sum;
}
