// One warp rakes: each of its lanes adds up a run of eight, which lie nine words apart.
// scratch: ends int32[ceil_div(n, 256)]
// scratch: parts float32[ceil_div(n, 256)]
// launch: rake<<<ceil_div(n, 256), 256>>>(x, k, prefix, ends, parts, n)
// launch: join<<<ceil_div(n, 256), 256>>>(total, prefix, ends, parts, n)

#define AT(i) ((i) + (i) / 8)

extern "C" __global__ void rake(const float* x, const int* k, int* prefix, int* ends, float* parts, int n) {
    __shared__ int s[AT(256)];
    __shared__ float f[AT(256)];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[AT(t)] = i < n ? k[i] : 0;
    f[AT(t)] = i < n ? x[i] : 0;
    __syncthreads();
    if (t < 32) {
        int run[8], sum = 0;
        float part = 0;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            run[j] = sum += s[t * 9 + j];
            part += f[t * 9 + j];
        }
        int all = sum;
        for (int d = 1; d < 32; d *= 2) {
            int below = __shfl_up_sync(~0u, all, d);
            if (t >= d) all += below;
            part += __shfl_xor_sync(~0u, part, d);
        }
        for (int j = 0; j < 8; j++) s[t * 9 + j] = run[j] + all - sum;
        if (t == 31) ends[blockIdx.x] = all, parts[blockIdx.x] = part;
    }
    __syncthreads();
    if (i < n) prefix[i] = s[AT(t)];
}

extern "C" __global__ void join(float* total, int* prefix, const int* ends, const float* parts, int n) {
    __shared__ int before;
    __shared__ float sum;
    int t = threadIdx.x, i = blockIdx.x * 256 + t, mine = 0;
    if (t == 0) before = 0, sum = 0;
    __syncthreads();
    for (int b = t; b < blockIdx.x; b += 256) mine += ends[b];
    if (mine) atomicAdd_block(&before, mine);
    if (blockIdx.x == 0)
        for (int b = t; b < gridDim.x; b += 256) atomicAdd_block(&sum, parts[b]);
    __syncthreads();
    if (i < n) prefix[i] += before;
    if (blockIdx.x == 0 && t == 0) *total = sum;
}
