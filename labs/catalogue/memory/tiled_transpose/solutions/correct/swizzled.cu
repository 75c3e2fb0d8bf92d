// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), (32, 16)>>>(x, out, w, h)

// no padding: each row of the tile is rotated, so that a column is spread over the banks
extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    __shared__ float tile[32 * 32];
    int i = threadIdx.x;
    int column = blockIdx.x * 32 + i;
    for (int r = threadIdx.y; r < 32; r += 16) {
        int row = blockIdx.y * 32 + r;
        if (column < w && row < h) tile[r * 32 + (i ^ r)] = x[row * w + column];
    }
    __syncthreads();
    int out_column = blockIdx.y * 32 + i;
    for (int r = threadIdx.y; r < 32; r += 16) {
        int out_row = blockIdx.x * 32 + r;
        if (out_column < h && out_row < w)
            out[out_row * h + out_column] = tile[i * 32 + (r ^ i)];
    }
}
