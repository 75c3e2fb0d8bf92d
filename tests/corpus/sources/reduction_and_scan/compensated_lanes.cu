// Sums with what each addition lost (Neumaier), by one warp; elect.sync chooses who writes.
// scratch: ends int32[ceil_div(n, 128)]
// launch: sum<<<1, 32>>>(x, total, n)
// launch: scan<<<ceil_div(n, 128), 128>>>(k, prefix, ends, n)
// launch: join<<<ceil_div(n, 128), 128>>>(prefix, ends, n)

__device__ void add(float& sum, float& lost, float v) {
    float next = __fadd_rn(sum, v);
    lost += fabsf(sum) >= fabsf(v) ? __fadd_rn(__fsub_rn(sum, next), v) : __fadd_rn(__fsub_rn(v, next), sum);
    sum = next;
}

__device__ bool is_elected() {
    unsigned chosen;
    asm volatile("{\n\t.reg .pred mine;\n\telect.sync _|mine, 0xffffffff;\n\tselp.u32 %0, 1, 0, mine;\n\t}"
                 : "=r"(chosen));
    return chosen;
}

extern "C" __global__ void sum(const float* x, float* total, int n) {
    float sum = 0, lost = 0;
    for (int i = threadIdx.x; i < n; i += 32) add(sum, lost, x[i]);
    for (int d = 16; d; d /= 2) {
        float other = __shfl_xor_sync(~0u, sum, d);
        lost += __shfl_xor_sync(~0u, lost, d);
        add(sum, lost, other);
    }
    if (is_elected()) *total = sum + lost;
}

extern "C" __global__ void scan(const int* k, int* prefix, int* ends, int n) {
    __shared__ int warps[4];
    int t = threadIdx.x, i = blockIdx.x * 128 + t, v = i < n ? k[i] : 0;
    for (int d = 1; d < 32; d *= 2) {
        int below = __shfl_up_sync(~0u, v, d);
        if (t % 32 >= d) v += below;
    }
    if (t % 32 == 31) warps[t / 32] = v;
    __syncthreads();
    for (int w = t / 32; w-- > 0;) v += warps[w];
    if (i < n) prefix[i] = v;
    if (t == 127) ends[blockIdx.x] = v;
}

extern "C" __global__ void join(int* prefix, const int* ends, int n) {
    int i = blockIdx.x * 128 + threadIdx.x, before = 0;
    for (int b = threadIdx.x % 32; b < blockIdx.x; b += 32) before += ends[b];
    before = __reduce_add_sync(~0u, before);
    if (i < n) prefix[i] += before;
}
