// The last steps of the tree are a warp's alone: __syncwarp between reads and writes.
// scratch: part float32[ceil_div(n, 512)]
// launch: sum<<<ceil_div(n, 512), 256>>>(x, part, n)
// launch: sum<<<1, 256>>>(part, total, ceil_div(n, 512))
// launch: scan<<<1, 256>>>(k, prefix, n)

extern "C" __global__ void sum(const float* x, float* out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * 512 + t;
    s[t] = (i < n ? x[i] : 0) + (i + 256 < n ? x[i + 256] : 0);
    __syncthreads();
    if (t < 128) s[t] += s[t + 128];
    __syncthreads();
    if (t < 64) s[t] += s[t + 64];
    __syncthreads();
    if (t < 32) {
        float v = s[t] + s[t + 32];
        for (int d = 16; d > 0; d /= 2) {
            __syncwarp();
            s[t] = v;
            __syncwarp();
            v += s[(t + d) & 31];
        }
        if (t == 0) out[blockIdx.x] = v;
    }
}

// each thread adds up a run of its own, then learns what lies before it
extern "C" __global__ void scan(const int* k, int* prefix, int n) {
    __shared__ int runs[256];
    int t = threadIdx.x, length = (n + 255) / 256, begin = min(n, t * length), end = min(n, begin + length);
    int sum = 0;
    for (int i = begin; i < end; i++) sum += k[i];
    runs[t] = sum;
    __syncthreads();
    if (t < 32) {
        int v = 0, mine[8];
        for (int j = 0; j < 8; j++) mine[j] = v += runs[8 * t + j];
        int up = v;
        for (int d = 1; d < 32; d *= 2) {
            int below = __shfl_up_sync(~0u, up, d);
            up += t >= d ? below : 0;
        }
        for (int j = 0; j < 8; j++) runs[8 * t + j] = mine[j] + up - v;
    }
    __syncthreads();
    sum = t > 0 ? runs[t - 1] : 0;
    for (int i = begin; i < end; i++) prefix[i] = sum += k[i];
}
