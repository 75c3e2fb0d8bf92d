// The kernels whose compiled numbers the questions of this lab use. Each makes OUTPUTS
// weighted sums of K rows of x, one column a thread, with as many sums in registers; what
// differs is only how many blocks __launch_bounds__ asks a multiprocessor to hold.

template <int OUTPUTS>
__device__ __forceinline__ void sums(const float* x, const float* w, float* out, int n,
                                     int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum[OUTPUTS] = {};
    for (int row = 0; row < k; row++) {
        float value = x[row * n + i];
#pragma unroll
        for (int j = 0; j < OUTPUTS; j++) sum[j] += w[row * OUTPUTS + j] * value;
    }
#pragma unroll
    for (int j = 0; j < OUTPUTS; j++) out[j * n + i] = sum[j];
}

#define SUMS(NAME, OUTPUTS, THREADS, BLOCKS)                                           \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                      \
        NAME(const float* x, const float* w, float* out, int n, int k) {               \
        sums<OUTPUTS>(x, w, out, n, k);                                                \
    }

SUMS(sums_64_held_8, 64, 256, 8)
SUMS(sums_64_held_4, 64, 256, 4)
SUMS(sums_64_held_2, 64, 256, 2)
SUMS(sums_32_held_8, 32, 256, 8)
SUMS(sums_32_held_4, 32, 256, 4)
SUMS(sums_32_held_2, 32, 256, 2)
SUMS(sums_16_held_1, 16, 512, 1)
SUMS(sums_8_held_1, 8, 128, 1)

extern "C" __global__ void tile(const float* x, float* out, int n) {
    __shared__ float held[32][33];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        held[threadIdx.y + k][threadIdx.x] = x[(row + k) * n + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        out[(row + k) * n + column] = held[threadIdx.x][threadIdx.y + k];
}

extern "C" __global__ void large_tile(const float* x, float* out, int n) {
    __shared__ float held[96][97];
    for (int k = threadIdx.x; k < 96 * 96; k += blockDim.x)
        held[k / 96][k % 96] = x[blockIdx.x * 96 * 96 + k];
    __syncthreads();
    for (int k = threadIdx.x; k < 96 * 96; k += blockDim.x)
        out[blockIdx.x * 96 * 96 + k] = held[k % 96][k / 96];
}
