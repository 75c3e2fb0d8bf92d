// All threads of a block write and fence; behind a barrier one of them raises the flag.
// scratch: runs float32[256 * ceil_div(n, 512)]
// launch: sum<<<ceil_div(n, 512), 256>>>(x, runs, total, n)
// launch: scan<<<1, 256>>>(k, prefix, n)

__device__ unsigned arrived = 0;

extern "C" __global__ void sum(const float* x, float* runs, float* total, int n) {
    __shared__ unsigned ticket;
    __shared__ float s[256];
    int t = threadIdx.x;
    float v = 0;
    for (int i = blockIdx.x * 512 + t; i < min(n, int(blockIdx.x + 1) * 512); i += 256) v += x[i];
    runs[blockIdx.x * 256 + t] = v;
    __threadfence();
    __syncthreads();
    if (t == 0) ticket = atomicAdd(&arrived, 1u);
    __syncthreads();
    if (ticket != gridDim.x - 1) return;
    __threadfence();
    v = 0;
    for (int b = 0; b < gridDim.x; b++) v += __ldcg(&runs[b * 256 + t]);
    s[t] = v;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) s[t] += s[t + half];
        __syncthreads();
    }
    if (t == 0) {
        *total = s[0];
        arrived = 0;
    }
}

extern "C" __global__ void scan(const int* k, int* prefix, int n) {
    __shared__ int s[256];
    int t = threadIdx.x, before = 0;
    for (int first = 0; first < n; first += 256) {
        int i = first + t;
        s[t] = i < n ? k[i] : 0;
        __syncthreads();
        for (int d = 1; d < 256; d += d) {
            int v = 0;
            if (t >= d) v = s[t - d];
            __syncthreads();
            s[t] += v;
            __syncthreads();
        }
        if (i < n) prefix[i] = before + s[t];
        before += s[255];
        __syncthreads();
    }
}
