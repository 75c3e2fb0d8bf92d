// Tensor cores scan: the bytes of 16 x 16 numbers are multiplied by a triangle of ones.
// scratch: ends int32[ceil_div(n, 256)]
// launch: clear<<<1, 1>>>(total)
// launch: scan<<<ceil_div(n, 256), 32>>>(x, k, total, prefix, ends, n)
// launch: join<<<ceil_div(n, 256), 256>>>(prefix, ends, n)

extern "C" __global__ void clear(float* total) { *total = 0; }

__device__ void multiply(int (&d)[4], unsigned upper, unsigned lower, unsigned b) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%7,%7,%7};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(upper), "r"(lower), "r"(b), "r"(0));
}

extern "C" __global__ void scan(const float* x, const int* k, float* total, int* prefix, int* ends, int n) {
    __shared__ unsigned numbers[16][17];
    int lane = threadIdx.x, group = lane / 4, part = lane % 4, first = blockIdx.x * 256;
    float f = 0;
    for (int i = lane; i < 256; i += 32) {
        numbers[i / 16][i % 16] = first + i < n ? k[first + i] : 0;
        f += first + i < n ? x[first + i] : 0;
    }
    for (int d = 16; d > 0; d >>= 1) f += __shfl_xor_sync(~0u, f, d);
    if (lane == 0) atomicAdd(total, f);
    __syncwarp();
    // ones where the number's place is not behind the sum's
    unsigned near = 0, far = 0;
    for (int j = 0; j < 4; j++) {
        near |= (part * 4 + j <= group) << 8 * j;
        far |= (part * 4 + j <= group + 8) << 8 * j;
    }
    unsigned sums[2][4] = {};
    for (int byte = 0; byte < 4; byte++) {
        unsigned upper = 0, lower = 0;
        for (int j = 0; j < 4; j++) {
            upper |= (numbers[group][part * 4 + j] >> 8 * byte & 255) << 8 * j;
            lower |= (numbers[group + 8][part * 4 + j] >> 8 * byte & 255) << 8 * j;
        }
        int d[4];
        multiply(d, upper, lower, near);
        for (int j = 0; j < 4; j++) sums[0][j] += (unsigned)d[j] << 8 * byte;
        multiply(d, upper, lower, far);
        for (int j = 0; j < 4; j++) sums[1][j] += (unsigned)d[j] << 8 * byte;
    }
    __syncwarp();
    for (int j = 0; j < 4; j++) {
        numbers[group + j / 2 * 8][part * 2 + j % 2] = sums[0][j];
        numbers[group + j / 2 * 8][part * 2 + j % 2 + 8] = sums[1][j];
    }
    __syncwarp();
    // lane r has what row r has in all, and then what rows before it have
    unsigned own = lane < 16 ? numbers[lane][15] : 0, all = own;
    for (int d = 1; d < 16; d *= 2) {
        unsigned below = __shfl_up_sync(~0u, all, d);
        if (lane >= d) all += below;
    }
    if (lane == 15) ends[blockIdx.x] = all;
    for (int row = 0; row < 16; row += 2) {
        unsigned before = __shfl_sync(~0u, all - own, row + lane / 16);
        int i = first + row * 16 + lane;
        if (i < n) prefix[i] = before + numbers[row + lane / 16][lane % 16];
    }
}

extern "C" __global__ void join(int* prefix, const int* ends, int n) {
    int i = blockIdx.x * 256 + threadIdx.x, before = 0;
    for (int b = threadIdx.x % 32; b < blockIdx.x; b += 32) before += ends[b];
    before = __reduce_add_sync(~0u, before);
    if (i < n) prefix[i] += before;
}
