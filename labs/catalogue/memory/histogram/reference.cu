// launch: clear<<<1, 256>>>(counts, bins)
// launch: count<<<min(ceil_div(n, 1024), 264), 256>>>(x, counts, n, bins)

extern "C" __global__ void clear(int* counts, int bins) {
    if (threadIdx.x < bins) counts[threadIdx.x] = 0;
}

extern "C" __global__ void count(const unsigned char* x, int* counts, int n, int bins) {
    // the block's own histogram
    __shared__ int own[256];
    for (int b = threadIdx.x; b < bins; b += blockDim.x) own[b] = 0;
    __syncthreads();
    int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) atomicAdd(&own[x[i]], 1);
    __syncthreads();
    // one atomic for each bin that the block has seen, and not for each byte
    for (int b = threadIdx.x; b < bins; b += blockDim.x) {
        if (own[b] > 0) atomicAdd(&counts[b], own[b]);
    }
}
