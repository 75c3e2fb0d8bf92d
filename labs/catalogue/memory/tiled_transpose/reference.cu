// launch: transpose<<<(ceil_div(w, 64), ceil_div(h, 64)), (64, 4)>>>(x, out, w, h)

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    // one float more in each row: then a column lies in 32 different banks
    __shared__ float tile[64][65];
    int column = blockIdx.x * 64 + threadIdx.x;
    // 16 rows for each thread: reads that are on their way at the same time
#pragma unroll
    for (int r = 0; r < 64; r += 4) {
        int row = blockIdx.y * 64 + r + threadIdx.y;
        if (column < w && row < h) tile[r + threadIdx.y][threadIdx.x] = x[row * w + column];
    }
    __syncthreads();
    // the block's place is turned round, and so is the tile
    int out_column = blockIdx.y * 64 + threadIdx.x;
#pragma unroll
    for (int r = 0; r < 64; r += 4) {
        int out_row = blockIdx.x * 64 + r + threadIdx.y;
        if (out_column < h && out_row < w)
            out[out_row * h + out_column] = tile[threadIdx.x][r + threadIdx.y];
    }
}
