// launch: count<<<bins, 256>>>(x, counts, n)

// a block for each bin reads all of x
extern "C" __global__ void count(const unsigned char* x, int* counts, int n) {
    __shared__ int seen;
    if (threadIdx.x == 0) seen = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += 256) {
        if (x[i] == blockIdx.x) atomicAdd(&seen, 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) counts[blockIdx.x] = seen;
}
