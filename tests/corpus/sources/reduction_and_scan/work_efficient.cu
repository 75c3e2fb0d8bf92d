// Blelloch's scan, up and down a tree, of two elements a thread; the sum by the same tree.
// scratch: sums int32[ceil_div(n, 512)]
// scratch: zero int32[1]
// launch: scan<<<ceil_div(n, 512), 256>>>(k, prefix, sums, n)
// launch: scan<<<1, 256>>>(sums, sums, zero, ceil_div(n, 512))
// launch: add<<<ceil_div(n, 512), 512>>>(prefix, sums, n)
// launch: total_of<<<1, 256>>>(x, total, n)

extern "C" __global__ void scan(const int* k, int* out, int* sums, int n) {
    __shared__ int s[512];
    int t = threadIdx.x, i = blockIdx.x * 512 + t;
    int a = i < n ? k[i] : 0, b = i + 256 < n ? k[i + 256] : 0;
    s[t] = a;
    s[t + 256] = b;
    int step = 1;
    for (int pairs = 256; pairs > 0; pairs >>= 1, step <<= 1) {
        __syncthreads();
        if (t < pairs) s[step * (2 * t + 2) - 1] += s[step * (2 * t + 1) - 1];
    }
    __syncthreads();
    if (t == 0) {
        sums[blockIdx.x] = s[511];
        s[511] = 0;
    }
    for (int pairs = 1; pairs < 512; pairs <<= 1) {
        step >>= 1;
        __syncthreads();
        if (t < pairs) {
            int low = step * (2 * t + 1) - 1, high = step * (2 * t + 2) - 1, kept = s[low];
            s[low] = s[high];
            s[high] += kept;
        }
    }
    __syncthreads();
    if (i < n) out[i] = s[t] + a;
    if (i + 256 < n) out[i + 256] = s[t + 256] + b;
}

extern "C" __global__ void add(int* prefix, const int* sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x > 0 && i < n) prefix[i] += sums[blockIdx.x - 1];
}

extern "C" __global__ void total_of(const float* x, float* total, int n) {
    __shared__ double s[256];
    int t = threadIdx.x;
    double sum = 0;
    for (int i = t; i < n; i += 256) sum += x[i];
    s[t] = sum;
    for (int half = 128; half > 0; half >>= 1) {
        __syncthreads();
        if (t < half) s[t] += s[t + half];
    }
    if (t == 0) *total = (float)s[0];
}
