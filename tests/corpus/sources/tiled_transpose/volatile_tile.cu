// The tile is volatile, which is of no use and does no harm, beside a barrier.
// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), (32, 16)>>>(x, out, w, h)

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    volatile __shared__ float tile[32][33];
    unsigned left = 32 * blockIdx.x, top = 32 * blockIdx.y, a = threadIdx.x, b = threadIdx.y;
    if (top + b < h && left + a < w) tile[b][a] = x[(top + b) * w + left + a];
    if (top + b + 16 < h && left + a < w) tile[b + 16][a] = x[(top + b + 16) * w + left + a];
    __syncthreads();
    if (left + b < w && top + a < h) out[(left + b) * h + top + a] = tile[a][b];
    if (left + b + 16 < w && top + a < h) out[(left + b + 16) * h + top + a] = tile[a][b + 16];
}
