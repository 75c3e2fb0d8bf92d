// The lanes of a warp that have the same byte find each other, and one of them adds.
// launch: clear<<<1, 256>>>(counts, bins)
// launch: count<<<min(ceil_div(n, 1024), 100), 512>>>(x, counts, n, bins)

extern "C" __global__ void clear(int* counts, int bins) {
    if (threadIdx.x < bins) counts[threadIdx.x] = 0;
}

extern "C" __global__ void count(const unsigned char* x, int* counts, int n, int bins) {
    __shared__ int own[256];
    int t = threadIdx.x;
    if (t < 256) own[t] = 0;
    __syncthreads();
    for (int first = blockIdx.x * 512; first < n; first += gridDim.x * 512) {
        // -1 for lanes behind the end: the whole warp comes to the match
        int byte = first + t < n ? x[first + t] : -1;
        unsigned same = __match_any_sync(~0u, byte);
        if (byte >= 0 && t % 32 == __ffs(same) - 1) atomicAdd(&own[byte], __popc(same));
    }
    __syncthreads();
    if (t < bins && own[t]) atomicAdd(&counts[t], own[t]);
}
