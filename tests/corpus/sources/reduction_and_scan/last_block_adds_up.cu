// The block that finishes last adds up what all have left; its ticket wraps round to 0.
// scratch: part float32[ceil_div(n, 256)]
// launch: sum<<<ceil_div(n, 256), 256>>>(x, part, total, n)
// launch: scan<<<1, 1024>>>(k, prefix, n)

__device__ unsigned tickets;

__device__ float sum_of_block(float v, float* warps) {
    for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = threadIdx.x < 8 ? warps[threadIdx.x] : 0;
    if (threadIdx.x < 32)
        for (int d = 4; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
    return v;
}

extern "C" __global__ void sum(const float* x, float* part, float* total, int n) {
    __shared__ float warps[8];
    __shared__ bool is_last;
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    float v = sum_of_block(i < n ? x[i] : 0, warps);
    if (t == 0) {
        part[blockIdx.x] = v;
        __threadfence();
        is_last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    v = 0;
    for (int b = t; b < gridDim.x; b += 256) v += ((volatile float*)part)[b];
    v = sum_of_block(v, warps);
    if (t == 0) *total = v;
}

// Hillis and Steele between two rows of shared memory: one barrier for each step
extern "C" __global__ void scan(const int* k, int* prefix, int n) {
    __shared__ int rows[2][1024];
    int t = threadIdx.x, carried = 0;
    for (int first = 0; first < n; first += 1024) {
        int side = 0, i = first + t;
        rows[0][t] = i < n ? k[i] : 0;
        __syncthreads();
        for (int d = 1; d < 1024; d *= 2) {
            rows[1 - side][t] = rows[side][t] + (t >= d ? rows[side][t - d] : 0);
            side = 1 - side;
            __syncthreads();
        }
        if (i < n) prefix[i] = carried + rows[side][t];
        carried += rows[side][1023];
        __syncthreads();
    }
}
