// A union in shared memory: floats lie where whole numbers lay, behind a barrier.
// scratch: ends int32[ceil_div(n, 256)]
// scratch: parts float32[ceil_div(n, 256)]
// launch: blocks<<<ceil_div(n, 256), 256>>>(x, k, prefix, ends, parts, n)
// launch: join<<<ceil_div(n, 256), 256>>>(total, prefix, ends, parts, n)

union Both {
    int2 turns[256];
    float numbers[2][256];
};

extern "C" __global__ void blocks(const float* x, const int* k, int* prefix, int* ends, float* parts, int n) {
    __shared__ Both both;
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    // x and y of a pair are the rounds that are even and odd
    both.turns[t].x = i < n ? k[i] : 0;
    __syncthreads();
    bool is_odd = false;
    for (int d = 1; d < 256; d *= 2, is_odd = !is_odd) {
        if (is_odd)
            both.turns[t].x = both.turns[t].y + (t >= d ? both.turns[t - d].y : 0);
        else
            both.turns[t].y = both.turns[t].x + (t >= d ? both.turns[t - d].x : 0);
        __syncthreads();
    }
    int v = both.turns[t].x;
    if (i < n) prefix[i] = v;
    if (t == 255) ends[blockIdx.x] = v;
    __syncthreads();
    both.numbers[0][t] = i < n ? x[i] : 0;
    __syncthreads();
    int from = 0;
    for (int left = 128; left; left >>= 1, from ^= 1) {
        if (t < left) both.numbers[from ^ 1][t] = both.numbers[from][t] + both.numbers[from][t + left];
        __syncthreads();
    }
    if (t == 0) parts[blockIdx.x] = both.numbers[from][0];
}

extern "C" __global__ void join(float* total, int* prefix, const int* ends, const float* parts, int n) {
    int t = threadIdx.x, i = blockIdx.x * 256 + t, before = 0;
    for (int b = t % 32; b < blockIdx.x; b += 32) before += ends[b];
    before = __reduce_add_sync(~0u, before);
    if (i < n) prefix[i] += before;
    if (blockIdx.x > 0 || t >= 32) return;
    float sum = 0;
    for (int b = t; b < gridDim.x; b += 32) sum += parts[b];
    for (int d = 1; d < 32; d *= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (t == 0) *total = sum;
}
