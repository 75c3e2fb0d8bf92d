// A tree that templates unroll: barriers above a warp, __syncwarp below, volatile besides.
// scratch: part float32[64]
// launch: sum<<<64, 128>>>(x, part, n)
// launch: sum<<<1, 128>>>(part, total, 64)
// launch: scan<<<1, 512>>>(k, prefix, n)

template <int HALF>
__device__ __forceinline__ void fold(volatile float* s, int t) {
    if (HALF >= 32) {
        if (t < HALF) s[t] = s[t] + s[t + HALF];
        __syncthreads();
    } else if (t < 32) {
        float other = t < HALF ? s[t + HALF] : 0;
        __syncwarp();
        if (t < HALF) s[t] = s[t] + other;
        __syncwarp();
    }
    fold<HALF / 2>(s, t);
}
template <>
__device__ __forceinline__ void fold<0>(volatile float*, int) {}

extern "C" __global__ void sum(const float* x, float* out, int n) {
    __shared__ float s[128];
    int t = threadIdx.x;
    float v = 0;
    for (int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128) v += x[i];
    s[t] = v;
    __syncthreads();
    fold<64>(s, t);
    if (t == 0) out[blockIdx.x] = s[0];
}

// a block as wide as it is: in place, with two barriers for each step
extern "C" __global__ void scan(const int* k, int* prefix, int n) {
    __shared__ int s[512];
    int t = threadIdx.x, before = 0;
    for (int first = 0; first < n; first += 512) {
        s[t] = first + t < n ? k[first + t] : 0;
        __syncthreads();
        for (int d = 1; d < 512; d *= 2) {
            int v = t < d ? s[t] : s[t] + s[t - d];
            __syncthreads();
            s[t] = v;
            __syncthreads();
        }
        if (first + t < n) prefix[first + t] = before + s[t];
        before += s[511];
        __syncthreads();
    }
}
