// Lane 0 speaks for its warp: a store, __syncwarp, a fence, then the flag.
// scratch: sums int32[32]
// scratch: flags int32[32]
// launch: clear<<<1, 32>>>(flags)
// launch: scan<<<1, 1024>>>(k, prefix, sums, flags, n)
// launch: sum<<<1, 1024>>>(x, total, n)

extern "C" __global__ void clear(int* flags) { flags[threadIdx.x] = 0; }

// each warp has a run of its own, and waits for the warps before it, which never wait for it
extern "C" __global__ void scan(const int* k, int* prefix, int* sums, int* flags, int n) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int length = (n + 1023) / 1024 * 32, begin = min(n, warp * length), end = min(n, begin + length);
    int sum = 0;
    for (int i = begin + lane; i < end; i += 32) sum += k[i];
    sum = __reduce_add_sync(0xffffffff, sum);
    if (lane == 31) sums[warp] = sum;
    __syncwarp();
    if (lane == 0) {
        __threadfence();
        atomicExch(&flags[warp], 1);
    }
    __syncwarp();
    int before = 0;
    if (lane < warp) {
        while (atomicAdd(&flags[lane], 0) == 0) {}
        __threadfence();
        before = ((volatile int*)sums)[lane];
    }
    __syncwarp();
    before = __reduce_add_sync(0xffffffff, before);
    for (int first = begin; first < end; first += 32) {
        int i = first + lane, v = i < end ? k[i] : 0;
        for (int d = 1; d < 32; d *= 2) {
            int below = __shfl_up_sync(0xffffffff, v, d);
            if (lane >= d) v += below;
        }
        if (i < end) prefix[i] = before + v;
        before += __shfl_sync(0xffffffff, v, 31);
    }
}

extern "C" __global__ void sum(const float* x, float* total, int n) {
    __shared__ float warps[32];
    int t = threadIdx.x;
    float v = 0;
    for (int i = t; i < n; i += 1024) v += x[i];
    for (int d = 1; d < 32; d *= 2) v += __shfl_xor_sync(0xffffffff, v, d);
    warps[t / 32] = v;
    __syncthreads();
    if (t > 0) return;
    for (int w = 1; w < 32; w++) v += warps[w];
    *total = v;
}
