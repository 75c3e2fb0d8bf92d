// The block's counters are those of one word for two bins, 16 bits each: a block counts 4,096 bytes.
// scratch: part int32[ceil_div(n, 4096) * 256]
// launch: tally<<<ceil_div(n, 4096), 64>>>(x, part, n)
// launch: merge<<<bins, 32>>>(part, counts, ceil_div(n, 4096))

extern "C" __global__ void tally(const unsigned char* x, int* part, int n) {
    __shared__ unsigned pair[128];
    for (int w = threadIdx.x; w < 128; w += 64) pair[w] = 0;
    __syncthreads();
    int end = min(n, (int)(blockIdx.x + 1) * 4096);
    for (int i = blockIdx.x * 4096 + threadIdx.x; i < end; i += 64) {
        unsigned byte = x[i];
        atomicAdd(&pair[byte >> 1], byte & 1 ? 65536u : 1u);
    }
    __syncthreads();
    int* row = part + blockIdx.x * 256;
    for (int b = threadIdx.x; b < 256; b += 64) row[b] = pair[b >> 1] >> (b & 1 ? 16 : 0) & 65535;
}

extern "C" __global__ void merge(const int* part, int* counts, int blocks) {
    int sum = 0;
    for (int r = threadIdx.x; r < blocks; r += 32) sum += part[r * 256 + blockIdx.x];
    for (int by = 16; by; by /= 2) sum += __shfl_xor_sync(~0u, sum, by);
    if (threadIdx.x == 0) counts[blockIdx.x] = sum;
}
