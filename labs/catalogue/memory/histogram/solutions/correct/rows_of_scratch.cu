// Each block writes a row of counts, and a second kernel adds up the columns. No global atomics.
// scratch: rows int32[min(ceil_div(n, 512), 64) * bins]
// launch: count<<<min(ceil_div(n, 512), 64), 128>>>(x, rows, n, bins)
// launch: merge<<<ceil_div(bins, 32), 32>>>(rows, counts, min(ceil_div(n, 512), 64), bins)

__global__ void count(const unsigned char* x, int* rows, int n, int bins) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    own[threadIdx.x + 128] = 0;
    __syncthreads();
    for (int first = blockIdx.x * 128; first < n; first += gridDim.x * 128) {
        int i = first + threadIdx.x;
        if (i < n) atomicAdd(own + x[i], 1u);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < bins; b += 128) rows[blockIdx.x * bins + b] = own[b];
}

__global__ void merge(const int* rows, int* counts, int blocks, int bins) {
    int b = blockIdx.x * 32 + threadIdx.x;
    if (b >= bins) return;
    int sum = 0;
    for (int r = 0; r < blocks; r++) sum += rows[r * bins + b];
    counts[b] = sum;
}
