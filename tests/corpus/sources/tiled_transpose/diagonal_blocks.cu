// Blocks go through the tiles along diagonals, so that columns of DRAM are shared out.
// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), (32, 4)>>>(x, out, w, h)

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    __shared__ float tile[32][32 + 1];
    int number = blockIdx.y * gridDim.x + blockIdx.x;
    int ty = number % gridDim.y, tx = (number / gridDim.y + ty) % gridDim.x;
    int column = tx * 32 + threadIdx.x, row = ty * 32 + threadIdx.y;
    for (int r = 0; r < 32 && row + r < h; r += 4)
        if (column < w) tile[threadIdx.y + r][threadIdx.x] = x[(row + r) * w + column];
    __syncthreads();
    column = ty * 32 + threadIdx.x, row = tx * 32 + threadIdx.y;
    for (int r = 0; r < 32 && row + r < w; r += 4)
        if (column < h) out[(row + r) * h + column] = tile[threadIdx.x][threadIdx.y + r];
}
