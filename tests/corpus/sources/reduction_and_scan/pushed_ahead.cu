// Each warp pushes its end into all later warps' places, by atomics of the block's scope.
// scratch: before int32[ceil_div(n, 256) + 1]
// launch: clear<<<ceil_div(ceil_div(n, 256) + 1, 128), 128>>>(before, total, ceil_div(n, 256) + 1)
// launch: scan<<<ceil_div(n, 256), 256>>>(x, k, total, prefix, before, n)
// launch: join<<<ceil_div(n, 256), 256>>>(prefix, before, n)

extern "C" __global__ void clear(int* before, float* total, int length) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < length) before[i] = 0;
    if (i == 0) atomicExch(total, 0.f);
}

extern "C" __global__ void scan(const float* x, const int* k, float* total, int* prefix, int* before, int n) {
    __shared__ int earlier[9];
    __shared__ float part;
    int t = threadIdx.x, lane = t % 32, warp = t / 32, i = blockIdx.x * 256 + t;
    if (t < 9) earlier[t] = 0;
    if (t == 9) part = 0;
    __syncthreads();
    int v = i < n ? k[i] : 0;
    for (int d = 1; d < 32; d *= 2) {
        int below = __shfl_up_sync(~0u, v, d);
        if (lane >= d) v += below;
    }
    int end = __shfl_sync(~0u, v, 31);
    if (lane > warp && lane < 9) atomicAdd_block(&earlier[lane], end);
    if (i < n) atomicAdd_block(&part, x[i]);
    __syncthreads();
    if (i < n) prefix[i] = v + earlier[warp];
    if (t == 0) atomicAdd(total, part);
    // and so do blocks, for all that come later
    for (int b = blockIdx.x + 1 + t; b < gridDim.x; b += 256) atomicAdd(&before[b], earlier[8]);
}

extern "C" __global__ void join(int* prefix, const int* before, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) prefix[i] += before[blockIdx.x];
}
