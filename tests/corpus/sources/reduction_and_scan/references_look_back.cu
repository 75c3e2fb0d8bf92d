// cuda::atomic_ref publishes with release and looks back with acquire, 32 lanes at a time.
// scratch: status int32[ceil_div(n, 256) + 1]
// scratch: own int32[ceil_div(n, 256)]
// scratch: all int32[ceil_div(n, 256)]
// launch: clear<<<1, 256>>>(status, total, ceil_div(n, 256) + 1)
// launch: scan<<<ceil_div(n, 256), 256>>>(x, k, total, prefix, status, own, all, n)

#include <cuda/atomic>

using Status = cuda::atomic_ref<int, cuda::thread_scope_device>;
enum : int { NOTHING, OWN, ALL };

extern "C" __global__ void clear(int* status, float* total, int length) {
    for (int i = threadIdx.x; i < length; i += blockDim.x) status[i] = NOTHING;
    if (threadIdx.x == 0) *total = 0;
}

// what all blocks before have, by a warp that looks at 32 of them at once
__device__ int before_block(int b, int* status, int* own, int* all) {
    int lane = threadIdx.x, sum = 0;
    for (int last = b - 1; last >= 0; last -= 32) {
        int at = last - lane, found = ALL, value = 0;
        if (at >= 0) {
            Status its(status[at]);
            do found = its.load(cuda::memory_order_acquire);
            while (found == NOTHING);
            value = found == ALL ? all[at] : own[at];
        }
        unsigned complete = __ballot_sync(~0u, found == ALL);
        int nearest = complete ? __ffs(complete) - 1 : 31;
        sum += __reduce_add_sync(~0u, lane <= nearest ? value : 0);
        if (complete) break;
    }
    return sum;
}

extern "C" __global__ void scan(const float* x, const int* k, float* total, int* prefix,
                                int* status, int* own, int* all, int n) {
    __shared__ int number, before, warps[8];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    if (t == 0) number = Status(status[gridDim.x]).fetch_add(1, cuda::memory_order_relaxed);
    __syncthreads();
    int b = number, i = b * 256 + t, v = i < n ? k[i] : 0;
    float f = i < n ? x[i] : 0;
    for (int d = 1; d < 32; d *= 2) {
        int below = __shfl_up_sync(~0u, v, d);
        v += lane >= d ? below : 0;
        f += __shfl_down_sync(~0u, f, d);
    }
    if (lane == 31) warps[warp] = v;
    if (lane == 0) cuda::atomic_ref<float, cuda::thread_scope_device>(*total).fetch_add(f, cuda::memory_order_relaxed);
    __syncthreads();
    if (warp == 0) {
        int sum = __reduce_add_sync(~0u, lane < 8 ? warps[lane] : 0);
        if (lane == 0) {
            own[b] = sum;
            Status(status[b]).store(OWN, cuda::memory_order_release);
        }
        __syncwarp();
        int earlier = before_block(b, status, own, all);
        if (lane == 0) {
            before = earlier;
            all[b] = earlier + sum;
            Status(status[b]).store(ALL, cuda::memory_order_release);
        }
    }
    __syncthreads();
    for (int w = 0; w < warp; w++) v += warps[w];
    if (i < n) prefix[i] = before + v;
}
