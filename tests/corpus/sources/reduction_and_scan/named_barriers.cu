// Two halves of a block do one thing each, and wait at named barriers of 128 threads.
// launch: both<<<1, 256>>>(x, k, total, prefix, n)

__device__ __forceinline__ void wait_for_half(int which) {
    asm volatile("bar.sync %0, 128;" ::"r"(which + 1) : "memory");
}

extern "C" __global__ void both(const float* x, const int* k, float* total, int* prefix, int n) {
    __shared__ float f[128];
    __shared__ int s[128];
    int t = threadIdx.x % 128, half = threadIdx.x / 128;
    if (half == 0) {
        float v = 0;
        for (int i = t; i < n; i += 128) v += x[i];
        f[t] = v;
        for (int d = 64; d > 0; d /= 2) {
            wait_for_half(0);
            if (t < d) f[t] += f[t + d];
        }
        if (t == 0) *total = f[0];
        return;
    }
    for (int first = 0, before = 0; first < n; first += 128) {
        int i = first + t;
        s[t] = i < n ? k[i] : 0;
        wait_for_half(1);
        for (int d = 1; d < 128; d *= 2) {
            int v = t >= d ? s[t - d] : 0;
            wait_for_half(1);
            s[t] += v;
            wait_for_half(1);
        }
        if (i < n) prefix[i] = before + s[t];
        before += s[127];
        wait_for_half(1);
    }
}
