// atomicAdd of a float2, which sm_90 has: sums of even and of odd places, joined at last.
// scratch: pair float32[2]
// scratch: ends int32[ceil_div(n, 128)]
// launch: clear<<<1, 1>>>(pair)
// launch: scan<<<ceil_div(n, 128), 128>>>(x, k, prefix, ends, pair, n)
// launch: join<<<ceil_div(n, 128), 128>>>(total, prefix, ends, pair, n)

extern "C" __global__ void clear(float2* pair) { *pair = make_float2(0, 0); }

extern "C" __global__ void scan(const float* x, const int* k, int* prefix, int* ends, float2* pair, int n) {
    __shared__ int warps[4];
    int t = threadIdx.x, lane = t % 32, i = blockIdx.x * 128 + t, v = i < n ? k[i] : 0;
    float f = i < n ? x[i] : 0;
    for (int d = 1; d < 32; d *= 2) {
        int below = __shfl_up_sync(~0u, v, d);
        if (lane >= d) v += below;
        // the last step is left out, so that even and odd lanes stay apart
        if (d > 1) f += __shfl_xor_sync(~0u, f, d);
    }
    float odd = __shfl_down_sync(~0u, f, 1);
    if (lane == 0) atomicAdd(pair, make_float2(f, odd));
    if (lane == 31) warps[t / 32] = v;
    __syncthreads();
    for (int w = 0; w < t / 32; w++) v += warps[w];
    if (i < n) prefix[i] = v;
    if (t == 127) ends[blockIdx.x] = v;
}

extern "C" __global__ void join(float* total, int* prefix, const int* ends, const float2* pair, int n) {
    int i = blockIdx.x * 128 + threadIdx.x, before = 0;
    for (int b = threadIdx.x % 32; b < blockIdx.x; b += 32) before += ends[b];
    before = __reduce_add_sync(~0u, before);
    if (i < n) prefix[i] += before;
    if (i == 0) *total = pair->x + pair->y;
}
