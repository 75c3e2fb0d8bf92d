// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), (32, 8)>>>(x, out, w, h)

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    // one float more in each row: then a column lies in 32 different banks
    __shared__ float tile[32][33];
    int column = blockIdx.x * 32 + threadIdx.x;
    for (int r = threadIdx.y; r < 32; r += 8) {
        int row = blockIdx.y * 32 + r;
        if (column < w && row < h) tile[r][threadIdx.x] = x[row * w + column];
    }
    __syncthreads();
    // the block's place is turned round, and so is the tile
    int out_column = blockIdx.y * 32 + threadIdx.x;
    for (int r = threadIdx.y; r < 32; r += 8) {
        int out_row = blockIdx.x * 32 + r;
        if (out_column < h && out_row < w)
            out[out_row * h + out_column] = tile[threadIdx.x][r];
    }
}
