// Up to three blocks share out k, and leave their parts; the one that is last joins them.
// scratch: parts float32[min(3, ceil_div(k, 64)) * m * n]
// scratch: tickets uint32[ceil_div(n, 32) * ceil_div(m, 32)]
// launch: clear<<<ceil_div(ceil_div(n, 32) * ceil_div(m, 32), 64), 64>>>(tickets, ceil_div(n, 32) * ceil_div(m, 32))
// launch: matmul<<<(ceil_div(n, 32), ceil_div(m, 32), min(3, ceil_div(k, 64))), (32, 8)>>>(a, b, c, parts, tickets, m, n, k)

extern "C" __global__ void clear(unsigned* tickets, int tiles) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < tiles) tickets[i] = 0;
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, float* parts, unsigned* tickets,
                                  int m, int n, int k) {
    __shared__ float left[32][33], right[32][32];
    __shared__ bool is_last;
    int x = threadIdx.x, y = threadIdx.y, top = blockIdx.y * 32, column = blockIdx.x * 32 + x;
    int each = (k + gridDim.z - 1) / gridDim.z, begin = blockIdx.z * each, end = min(k, begin + each);
    float sum[4] = {};
    for (int from = begin; from < end; from += 32) {
        for (int i = y; i < 32; i += 8) {
            left[i][x] = top + i < m && from + x < end ? a[(top + i) * k + from + x] : 0;
            right[i][x] = from + i < end && column < n ? b[(from + i) * n + column] : 0;
        }
        __syncthreads();
        for (int d = 0; d < 32; d++)
            for (int i = 0; i < 4; i++) sum[i] += left[y + 8 * i][d] * right[d][x];
        __syncthreads();
    }
    if (gridDim.z > 1) {
        for (int i = 0; i < 4; i++)
            if (top + y + 8 * i < m && column < n)
                parts[((size_t)blockIdx.z * m + top + y + 8 * i) * n + column] = sum[i];
        __syncthreads();
        if (x + y == 0) {
            unsigned ticket;
            // releases what all of the block wrote before the barrier, and acquires what others did
            asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                         : "=r"(ticket)
                         : "l"(&tickets[blockIdx.y * gridDim.x + blockIdx.x]), "r"(gridDim.z)
                         : "memory");
            is_last = ticket == gridDim.z - 1;
        }
        __syncthreads();
        if (!is_last) return;
    }
    for (int i = 0; i < 4; i++) {
        int row = top + y + 8 * i;
        if (row >= m || column >= n) break;
        for (int z = 0; z < gridDim.z; z++)
            if (z != blockIdx.z) sum[i] += __ldcg(&parts[((size_t)z * m + row) * n + column]);
        c[row * n + column] = sum[i];
    }
}
