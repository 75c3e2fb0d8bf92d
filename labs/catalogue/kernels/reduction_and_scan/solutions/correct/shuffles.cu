// One block of 1,024 threads goes over everything, a warp at a time by shuffles.
// launch: both<<<1, 1024>>>(x, k, total, prefix, n)

__device__ float sum_of_warp(float v) {
    for (int by = 16; by; by /= 2) v += __shfl_xor_sync(~0u, v, by);
    return v;
}

__device__ int scan_of_warp(int v) {
    for (int back = 1; back < 32; back *= 2) {
        int earlier = __shfl_up_sync(~0u, v, back);
        if (threadIdx.x % 32 >= back) v += earlier;
    }
    return v;
}

extern "C" __global__ void both(const float* x, const int* k, float* total, int* prefix, int n) {
    __shared__ float sums[32];
    __shared__ int runs[32];
    int t = threadIdx.x, warp = t / 32, lane = t % 32;
    float mine = 0;
    int carried = 0;
    for (int first = 0; first < n; first += 1024) {
        int i = first + t;
        mine += i < n ? x[i] : 0;
        int run = scan_of_warp(i < n ? k[i] : 0);
        if (lane == 31) runs[warp] = run;
        __syncthreads();
        if (warp == 0) runs[lane] = scan_of_warp(runs[lane]);
        __syncthreads();
        if (i < n) prefix[i] = carried + run + (warp ? runs[warp - 1] : 0);
        carried += runs[31];
        __syncthreads();
    }
    mine = sum_of_warp(mine);
    if (lane == 0) sums[warp] = mine;
    __syncthreads();
    if (warp == 0) {
        mine = sum_of_warp(sums[lane]);
        if (lane == 0) total[0] = mine;
    }
}
