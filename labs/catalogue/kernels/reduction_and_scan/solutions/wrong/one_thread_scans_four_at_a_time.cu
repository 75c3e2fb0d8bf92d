// launch: sum<<<1, 256>>>(x, total, n)
// launch: scan<<<1, 1>>>(k, prefix, n)

extern "C" __global__ void sum(const float* x, float* total, int n) {
    __shared__ float part[256];
    int t = threadIdx.x;
    float own = 0;
    for (int i = t; i < n; i += 256) own += x[i];
    part[t] = own;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) total[0] = part[0];
}

// right, and four at a time, but one thread does it all
extern "C" __global__ void scan(const int* k, int* prefix, int n) {
    int before = 0, i = 0;
    for (; i + 32 <= n; i += 32) {
#pragma unroll
        for (int j = i; j < i + 32; j += 4) {
            int4 own = *(const int4*)(k + j), sums;
            sums.x = before += own.x;
            sums.y = before += own.y;
            sums.z = before += own.z;
            sums.w = before += own.w;
            *(int4*)(prefix + j) = sums;
        }
    }
    for (; i < n; i++) prefix[i] = before += k[i];
}
