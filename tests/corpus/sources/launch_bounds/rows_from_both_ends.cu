// Rows are added from both ends to the middle, which is another order of sums.
// launch: sums<<<ceil_div(n, 128), 128>>>(x, w, out, n, k)

struct Sums {
    float of[32];
    __device__ void add(const float* w, float v) {
#pragma unroll
        for (int j = 0; j < 32; j++) of[j] = fmaf(w[j], v, of[j]);
    }
};

extern "C" __global__ void sums(const float* x, const float* w, float* out, int n, int k) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n) return;
    Sums sums = {};
    for (int low = 0, high = k - 1; low <= high; low++, high--) {
        sums.add(w + 32 * low, x[low * n + i]);
        if (high > low) sums.add(w + 32 * high, x[high * n + i]);
    }
#pragma unroll
    for (int j = 31; j >= 0; j--) out[j * n + i] = sums.of[j];
}
