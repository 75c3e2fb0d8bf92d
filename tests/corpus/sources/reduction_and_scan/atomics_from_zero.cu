// Atomics: a first launch clears, warps add to shared memory, blocks to the total.
// scratch: sums int32[ceil_div(n, 256)]
// launch: clear<<<1, 1>>>(total)
// launch: add<<<ceil_div(n, 256), 256>>>(x, k, total, sums, n)
// launch: scan<<<ceil_div(n, 256), 256>>>(k, sums, prefix, n)

extern "C" __global__ void clear(float* total) { *total = 0; }

extern "C" __global__ void add(const float* x, const int* k, float* total, int* sums, int n) {
    __shared__ float of_block;
    __shared__ int whole;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) of_block = 0, whole = 0;
    __syncthreads();
    if (i < n) {
        atomicAdd(&of_block, x[i]);
        atomicAdd(&whole, k[i]);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(total, of_block);
        sums[blockIdx.x] = whole;
    }
}

// each block adds up the sums of those before it by itself
extern "C" __global__ void scan(const int* k, const int* sums, int* prefix, int n) {
    __shared__ int ends[8], before;
    int t = threadIdx.x, lane = t & 31, i = blockIdx.x * 256 + t, earlier = 0;
    for (int b = t; b < blockIdx.x; b += 256) earlier += sums[b];
    earlier = __reduce_add_sync(0xffffffff, earlier);
    if (t == 0) before = 0;
    __syncthreads();
    if (lane == 0) atomicAdd(&before, earlier);
    int v = i < n ? k[i] : 0;
    for (int d = 1; d < 32; d <<= 1) {
        int below = __shfl_up_sync(0xffffffff, v, d);
        v += lane < d ? 0 : below;
    }
    if (lane == 31) ends[t >> 5] = v;
    __syncthreads();
    v += before;
    for (int w = 0; w < t >> 5; w++) v += ends[w];
    if (i < n) prefix[i] = v;
}
