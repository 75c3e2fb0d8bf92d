// The sums are unrolled by a template that calls itself, and fused by inline PTX.
// launch: sums<<<ceil_div(n, 96), 96>>>(x, w, out, n, k)

template <int J>
struct Each {
    static __device__ __forceinline__ void add(float* sum, const float* w, float v) {
        asm("fma.rn.f32 %0, %1, %2, %0;" : "+f"(sum[J]) : "f"(w[J]), "f"(v));
        Each<J - 1>::add(sum, w, v);
    }
    static __device__ __forceinline__ void put(const float* sum, float* out, int n) {
        out[J * n] = sum[J];
        Each<J - 1>::put(sum, out, n);
    }
};
template <>
struct Each<-1> {
    static __device__ void add(float*, const float*, float) {}
    static __device__ void put(const float*, float*, int) {}
};

extern "C" __global__ void sums(const float* x, const float* w, float* out, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum[32] = {};
    for (int row = 0; row < k; row++) Each<31>::add(sum, w + 32 * row, x[row * n + i]);
    Each<31>::put(sum, out + i, n);
}
