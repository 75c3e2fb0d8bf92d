// scratch: unused int32[1]
// launch: zero<<<1, 1>>>(total)
// launch: sum<<<ceil_div(n, 256), 256>>>(x, total, n)
// launch: slow_scan<<<1, 1>>>(k, prefix, n)

extern "C" __global__ void zero(float* total) { total[0] = 0; }

extern "C" __global__ void sum(const float* x, float* total, int n) {
    __shared__ float part[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    part[t] = i < n ? x[i] : 0;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    // two blocks may read the same value, and one of their sums is lost
    if (t == 0) total[0] += part[0];
}

extern "C" __global__ void slow_scan(const int* k, int* prefix, int n) {
    int running = 0;
    for (int i = 0; i < n; i++) prefix[i] = running += k[i];
}
