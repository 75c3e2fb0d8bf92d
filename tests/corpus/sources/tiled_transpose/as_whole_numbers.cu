// Floats are moved as whole numbers, through a union, in a grid whose sides are exchanged.
// launch: transpose<<<(ceil_div(h, 32), ceil_div(w, 32)), (32, 8)>>>(x, out, w, h)

union Number {
    float f;
    unsigned u;
};

extern "C" __global__ void transpose(const unsigned* x, unsigned* out, int w, int h) {
    __shared__ unsigned tile[32][33];
    int top = blockIdx.x * 32, left = blockIdx.y * 32;
    for (int r = threadIdx.y; r < min(32, h - top); r += blockDim.y)
        if (left + threadIdx.x < w) {
            Number number;
            number.u = x[(top + r) * w + left + threadIdx.x];
            tile[r][threadIdx.x] = number.u;
        }
    __syncthreads();
    for (int r = threadIdx.y; r < min(32, w - left); r += blockDim.y)
        if (top + threadIdx.x < h) out[(left + r) * h + top + threadIdx.x] = tile[threadIdx.x][r];
}
