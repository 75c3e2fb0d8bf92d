// Threads load four bytes at once, and each warp has counters of its own.
// launch: clear<<<ceil_div(bins, 64), 64>>>(counts, bins)
// launch: count<<<min(ceil_div(n, 2048), 132), dim3(32, 4), bins * 16>>>(x, counts, n, bins)

extern "C" __global__ void clear(int* counts, int bins) {
    int b = blockIdx.x * 64 + threadIdx.x;
    if (b < bins) counts[b] = 0;
}

extern "C" __global__ void count(const unsigned char* x, int* counts, int n, int bins) {
    extern __shared__ int held[];
    int t = threadIdx.y * 32 + threadIdx.x;
    int* own = held + threadIdx.y * bins;
    for (int b = t; b < 4 * bins; b += 128) held[b] = 0;
    __syncthreads();
    const uchar4* fours = reinterpret_cast<const uchar4*>(x);
    for (int i = blockIdx.x * 128 + t; i < n / 4; i += gridDim.x * 128) {
        uchar4 v = fours[i];
        atomicAdd(&own[v.x], 1);
        atomicAdd(&own[v.y], 1);
        atomicAdd(&own[v.z], 1);
        atomicAdd(&own[v.w], 1);
    }
    // up to three bytes behind the last four
    if (blockIdx.x == 0 && t < n % 4) atomicAdd(&own[x[n / 4 * 4 + t]], 1);
    __syncthreads();
    for (int b = t; b < bins; b += 128) {
        int sum = 0;
        for (int w = 0; w < 4; w++) sum += held[w * bins + b];
        atomicAdd(&counts[b], sum);
    }
}
