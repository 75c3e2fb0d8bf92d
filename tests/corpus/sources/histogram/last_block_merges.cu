// Blocks leave rows of counts in memory, and the block that is last by a ticket adds them up.
// scratch: rows int32[min(ceil_div(n, 300), 12) * bins]
// launch: count<<<min(ceil_div(n, 300), 12), 96>>>(x, rows, counts, n, bins)

__device__ unsigned arrived;

extern "C" __global__ void count(const unsigned char* x, int* rows, int* counts, int n, int bins) {
    __shared__ int own[256];
    __shared__ bool is_last;
    for (int b = threadIdx.x; b < 256; b += 96) own[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 96 + threadIdx.x; i < n; i += 96 * gridDim.x) atomicAdd(&own[x[i]], 1);
    __syncthreads();
    for (int b = threadIdx.x; b < bins; b += 96) rows[blockIdx.x * bins + b] = own[b];
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(&arrived, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!is_last) return;
    for (int b = threadIdx.x; b < bins; b += 96) {
        int sum = 0;
        for (int r = 0; r < gridDim.x; r++) sum += rows[r * bins + b];
        counts[b] = sum;
    }
    if (threadIdx.x == 0) arrived = 0;
}
