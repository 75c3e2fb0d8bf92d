// The block's only barriers are votes: __syncthreads_count, _or and _and, of what else is asked.
// scratch: ends int32[ceil_div(n, 256)]
// launch: clear<<<1, 1>>>(total)
// launch: scan<<<ceil_div(n, 256), 256>>>(x, k, total, prefix, ends, n)
// launch: join<<<ceil_div(n, 256), 256>>>(prefix, ends, n)

extern "C" __global__ void clear(float* total) { *total = 0; }

extern "C" __global__ void scan(const float* x, const int* k, float* total, int* prefix, int* ends, int n) {
    __shared__ int s[2][256];
    __shared__ float f[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t, from = 0, d = 1;
    s[0][t] = i < n ? k[i] : 0;
    f[t] = i < n ? x[i] : 0;
    int length = __syncthreads_count(i < n);
    do {
        s[from ^ 1][t] = s[from][t] + (t >= d ? s[from][t - d] : 0);
        float w = t + d < length ? f[t + d] : 0;
        // nobody writes f before all have read it; d is the same for all
        if (__syncthreads_and(d >= length)) break;
        f[t] += w;
        from ^= 1, d *= 2;
    } while (__syncthreads_or(d < length));
    if (i < n) prefix[i] = s[from][t];
    if (t == length - 1) ends[blockIdx.x] = s[from][t];
    if (t == 0) atomicAdd(total, f[0]);
}

extern "C" __global__ void join(int* prefix, const int* ends, int n) {
    int i = blockIdx.x * 256 + threadIdx.x, before = 0;
    for (int b = threadIdx.x % 32; b < blockIdx.x; b += 32) before += ends[b];
    before = __reduce_add_sync(~0u, before);
    if (i < n) prefix[i] += before;
}
