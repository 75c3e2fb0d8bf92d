// One thread block of 64 x 16, four quarters of 32, and reads that are all made before any write.
// launch: transpose<<<(ceil_div(w, 64), ceil_div(h, 64)), (64, 16)>>>(x, out, w, h)

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    __shared__ float tile[64][65];
    const int left = blockIdx.x * 64, top = blockIdx.y * 64;
    float kept[4];
#pragma unroll
    for (int q = 0; q < 4; q++) {
        int row = top + 16 * q + threadIdx.y, column = left + threadIdx.x;
        kept[q] = row < h && column < w ? x[row * w + column] : __int_as_float(0x7fc00000);
    }
#pragma unroll
    for (int q = 0; q < 4; q++) tile[16 * q + threadIdx.y][threadIdx.x] = kept[q];
    __syncthreads();
#pragma unroll
    for (int q = 0; q < 4; q++) {
        int row = left + 16 * q + threadIdx.y, column = top + threadIdx.x;
        if (row < w && column < h) out[row * h + column] = tile[threadIdx.x][16 * q + threadIdx.y];
    }
}
