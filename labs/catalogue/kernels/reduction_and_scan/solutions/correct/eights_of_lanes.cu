// Shuffles of width 8, then of width 4 over what eights have: lanes are digits of two bases.
// scratch: ends int32[ceil_div(n, 1024)]
// launch: clear<<<1, 1>>>(total)
// launch: scan<<<ceil_div(n, 1024), 1024>>>(x, k, total, prefix, ends, n)
// launch: join<<<ceil_div(n, 1024), 1024>>>(prefix, ends, n)

extern "C" __global__ void clear(float* total) { total[0] = 0; }

// inclusive, over the 32 lanes
__device__ int scanned(int v) {
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int d = 1; d < 8; d *= 2) {
        int below = __shfl_up_sync(0xffffffff, v, d, 8);
        v += (lane & 7) >= d ? below : 0;
    }
    // lane e of each four has the end of the e-th eight
    int end = __shfl_sync(0xffffffff, v, (lane & 3) * 8 + 7);
    for (int d = 1; d < 4; d *= 2) {
        int below = __shfl_up_sync(0xffffffff, end, d, 4);
        if ((lane & 3) >= d) end += below;
    }
    int before = __shfl_sync(0xffffffff, end, (lane >> 3) - 1, 4);
    return lane < 8 ? v : v + before;
}

extern "C" __global__ void scan(const float* x, const int* k, float* total, int* prefix, int* ends, int n) {
    __shared__ int warps[32];
    __shared__ double parts[32];
    int t = threadIdx.x, i = blockIdx.x * 1024 + t;
    int v = scanned(i < n ? k[i] : 0);
    double f = i < n ? x[i] : 0;
    for (int d = 4; d; d >>= 1) f += __shfl_down_sync(0xffffffff, f, d, 8);
    f += __shfl_down_sync(0xffffffff, f, 8, 16);
    f += __shfl_down_sync(0xffffffff, f, 16);
    if ((t & 31) == 31) warps[t >> 5] = v;
    if ((t & 31) == 0) parts[t >> 5] = f;
    __syncthreads();
    if (t < 32) {
        warps[t] = scanned(warps[t]);
        f = parts[t];
        for (int d = 1; d < 32; d *= 2) f += __shfl_xor_sync(0xffffffff, f, d);
        if (t == 0) atomicAdd(total, (float)f);
    }
    __syncthreads();
    if (t >= 32) v += warps[(t >> 5) - 1];
    if (i < n) prefix[i] = v;
    if (t == 1023) ends[blockIdx.x] = v;
}

extern "C" __global__ void join(int* prefix, const int* ends, int n) {
    int i = blockIdx.x * 1024 + threadIdx.x, lane = threadIdx.x & 31, before = 0;
    for (int b = lane; b < blockIdx.x; b += 32) before += ends[b];
    before = __reduce_add_sync(0xffffffff, before);
    if (i < n) prefix[i] += before;
}
