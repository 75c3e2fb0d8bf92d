// A struct with methods holds a block's shared memory, and warps have roles by a switch.
// launch: both<<<1, 64>>>(x, k, total, prefix, n)

struct Warp {
    unsigned lane;
    __device__ explicit Warp(unsigned thread) : lane(thread & 31) {}
    template <class T>
    __device__ T up_to_here(T v) const {
        for (unsigned d = 1; d < 32; d <<= 1) {
            T below = __shfl_up_sync(~0u, v, d);
            v += lane >= d ? below : T(0);
        }
        return v;
    }
    template <class T>
    __device__ T of_last(T v) const { return __shfl_sync(~0u, v, 31); }
};

extern "C" __global__ void both(const float* x, const int* k, float* total, int* prefix, int n) {
    Warp warp(threadIdx.x);
    switch (threadIdx.x / 32) {
        case 0: {
            float sum = 0;
            for (int i = warp.lane; i < n; i += 32) sum += x[i];
            sum = warp.of_last(warp.up_to_here(sum));
            if (warp.lane == 0) *total = sum;
            break;
        }
        default: {
            int before = 0;
            for (int first = 0; first < n; first += 32) {
                int i = first + warp.lane, v = before + warp.up_to_here(i < n ? k[i] : 0);
                if (i < n) prefix[i] = v;
                before = warp.of_last(v);
            }
        }
    }
}
