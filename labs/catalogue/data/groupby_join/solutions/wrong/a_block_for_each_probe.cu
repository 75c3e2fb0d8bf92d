// launch: count_rows<<<m, 1024>>>(key, amount, probe, least, matches, total, n)

// right, and every probe looks at every row, if with a whole block
__global__ void count_rows(const int* key, const int* amount, const int* probe, int least,
                           int* matches, int* total, int n) {
    __shared__ int count, sum;
    if (threadIdx.x == 0) count = sum = 0;
    __syncthreads();
    int wanted = probe[blockIdx.x];
    if (wanted >= 0)
        for (int row = threadIdx.x; row < n; row += blockDim.x)
            if (key[row] == wanted && amount[row] >= least) {
                atomicAdd(&count, 1);
                atomicAdd(&sum, amount[row]);
            }
    __syncthreads();
    if (threadIdx.x == 0) {
        matches[blockIdx.x] = count;
        total[blockIdx.x] = sum;
    }
}
