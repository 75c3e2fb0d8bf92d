// One block of 32 warps strides over all, and carries the sum of what lies before along.
// launch: both<<<1, 1024>>>(x, k, total, prefix, n)

__device__ float sum_of_warp(float v) {
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffff, v, d);
    return v;
}

__device__ int scan_of_warp(int v, int lane) {
    for (int d = 1; d < 32; d <<= 1) {
        int below = __shfl_up_sync(0xffffffff, v, d);
        if (lane >= d) v += below;
    }
    return v;
}

extern "C" __global__ void both(const float* x, const int* k, float* total, int* prefix, int n) {
    __shared__ float sums[32];
    __shared__ int before[32];
    int t = threadIdx.x, lane = t % 32, warp = t / 32, carried = 0;
    float sum = 0;
    for (int i = t; i < n; i += 1024) sum += x[i];
    sum = sum_of_warp(sum);
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = sum_of_warp(sums[lane]);
        if (lane == 0) *total = sum;
    }
    for (int first = 0; first < n; first += 1024) {
        int i = first + t, v = scan_of_warp(i < n ? k[i] : 0, lane);
        if (lane == 31) before[warp] = v;
        __syncthreads();
        if (warp == 0) before[lane] = scan_of_warp(before[lane], lane);
        __syncthreads();
        if (warp > 0) v += before[warp - 1];
        if (i < n) prefix[i] = carried + v;
        carried += before[31];
        // before is written again
        __syncthreads();
    }
}
