// Warps without elements leave at once, and the barrier waits for those that stay.
// scratch: part float32[ceil_div(n, 1024)]
// launch: sum<<<ceil_div(n, 1024), 1024>>>(x, part, n)
// launch: sum<<<1, 1024>>>(part, total, ceil_div(n, 1024))
// launch: scan<<<1, 32>>>(k, prefix, n)

extern "C" __global__ void sum(const float* x, float* out, int n) {
    __shared__ float s[32];
    int here = min(1024, n - blockIdx.x * 1024), warps = (here + 31) / 32;
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    if (warp >= warps) return;
    float v = t < here ? x[blockIdx.x * 1024 + t] : 0;
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffff, v, d);
    if (lane == 0) s[warp] = v;
    __syncthreads();
    if (warp) return;
    v = lane < warps ? s[lane] : 0;
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffff, v, d);
    if (lane == 0) out[blockIdx.x] = v;
}

// one warp, each lane 4 elements at a time
extern "C" __global__ void scan(const int* k, int* prefix, int n) {
    int lane = threadIdx.x, carried = 0;
    for (int first = 0; first < n; first += 128) {
        int v[4], sum = 0;
        for (int j = 0; j < 4; j++) {
            int i = first + 4 * lane + j;
            v[j] = sum += i < n ? k[i] : 0;
        }
        int up = sum;
        for (int d = 1; d < 32; d *= 2) {
            int below = __shfl_up_sync(0xffffffff, up, d);
            if (lane >= d) up += below;
        }
        for (int j = 0; j < 4; j++) {
            int i = first + 4 * lane + j;
            if (i < n) prefix[i] = carried + up - sum + v[j];
        }
        carried += __shfl_sync(0xffffffff, up, 31);
    }
}
