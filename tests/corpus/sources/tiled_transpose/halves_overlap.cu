// A tile of 32 x 32 in two halves of 16 rows: the second is loaded while the first is turned.
// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), 256>>>(x, out, w, h)

// 32 for a row, and 32 for 16 rows of two columns
__device__ int bank(int r, int c) { return r + (c >> 1) + 16 * (c & 1) & 31; }

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    __shared__ float tile[1 << 10];
    int t = threadIdx.x, left = blockIdx.x << 5, top = blockIdx.y << 5;
    float held[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int r = t >> 5 | j << 3, c = t & 31;
        held[j] = top + r < h && left + c < w ? x[(top + r) * w + left + c] : 0;
        if (j < 2) tile[r << 5 | bank(r, c)] = held[j];
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 2; j++) {
        int r = (t >> 5) + 16 + 8 * j, c = t & 31;
        tile[r << 5 | bank(r, c)] = held[j + 2];
    }
    // a half of a warp has 16 rows of one column; two columns lie beside each other
#pragma unroll
    for (int pass = 0; pass < 2; pass++) {
        if (pass) __syncthreads();
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int c = (t >> 4) + 16 * j, r = (t & 15) + 16 * pass;
            if (left + c < w && top + r < h) out[(left + c) * h + top + r] = tile[r << 5 | bank(r, c)];
        }
    }
}
