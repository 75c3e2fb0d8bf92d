// Blocks in a chain: flags are stored with release and loaded with acquire, in inline PTX.
// scratch: flags uint32[ceil_div(n, 256) + 1]
// scratch: sums int32[ceil_div(n, 256)]
// scratch: parts float32[ceil_div(n, 256)]
// launch: clear<<<ceil_div(n, 256) + 1, 1>>>(flags)
// launch: chain<<<ceil_div(n, 256), 256>>>(x, k, total, prefix, flags, sums, parts, n)

__device__ void release(unsigned* flag) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(1u) : "memory");
}
__device__ unsigned acquire(const unsigned* flag) {
    unsigned found;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(flag) : "memory");
    return found;
}

extern "C" __global__ void clear(unsigned* flags) { flags[blockIdx.x] = 0; }

extern "C" __global__ void chain(const float* x, const int* k, float* total, int* prefix,
                                 unsigned* flags, int* sums, float* parts, int n) {
    __shared__ int s[256], number, before;
    __shared__ float f[256];
    int t = threadIdx.x;
    if (t == 0) number = atomicAdd(&flags[gridDim.x], 1u);
    __syncthreads();
    int b = number, i = b * 256 + t;
    s[t] = i < n ? k[i] : 0;
    f[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        int v = t >= d ? s[t - d] : 0;
        float w = t + d < 256 ? f[t + d] : 0;
        __syncthreads();
        s[t] += v;
        if (t % (2 * d) == 0) f[t] += w;
        __syncthreads();
    }
    if (t == 0) {
        int earlier = 0;
        float sum = f[0];
        if (b > 0) {
            while (acquire(&flags[b - 1]) == 0) {}
            earlier = sums[b - 1];
            sum += parts[b - 1];
        }
        sums[b] = earlier + s[255];
        parts[b] = sum;
        release(&flags[b]);
        if (b == gridDim.x - 1) *total = sum;
        before = earlier;
    }
    __syncthreads();
    if (i < n) prefix[i] = before + s[t];
}
