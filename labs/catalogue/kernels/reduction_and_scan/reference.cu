// scratch: part float32[ceil_div(n, 256)]
// scratch: block_total int32[ceil_div(n, 256)]
// scratch: before int32[ceil_div(n, 256)]
// scratch: unused int32[1]
// launch: sum<<<ceil_div(n, 256), 256>>>(x, part, n)
// launch: sum<<<1, 256>>>(part, total, ceil_div(n, 256))
// launch: scan<<<ceil_div(n, 256), 256>>>(k, prefix, block_total, n)
// launch: scan<<<1, 256>>>(block_total, before, unused, ceil_div(n, 256))
// launch: add_before<<<ceil_div(n, 256), 256>>>(prefix, before, n)

// each block sums 256 floats, in a tree: 128 pairs, 64 pairs, ...
extern "C" __global__ void sum(const float* x, float* out, int n) {
    __shared__ float part[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    part[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = part[0];
}

// running sums of each block (Hillis and Steele): look 1, 2, 4, ... places back
extern "C" __global__ void scan(const int* k, int* prefix, int* block_total, int n) {
    __shared__ int sums[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    sums[t] = i < n ? k[i] : 0;
    __syncthreads();
    for (int back = 1; back < 256; back *= 2) {
        int earlier = t >= back ? sums[t - back] : 0;
        __syncthreads();
        sums[t] += earlier;
        __syncthreads();
    }
    if (i < n) prefix[i] = sums[t];
    if (t == 255) block_total[blockIdx.x] = sums[255];
}

// what the blocks before have in all
extern "C" __global__ void add_before(int* prefix, const int* before, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n && blockIdx.x > 0) prefix[i] += before[blockIdx.x - 1];
}
