// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), (32, 8)>>>(x, out, w, h)

// Right, but look at the sectors: each warp writes down a column, and every float that it
// writes lies in a sector of its own. Turn each tile of 32 x 32 in shared memory.
extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    int column = blockIdx.x * 32 + threadIdx.x;
    for (int r = threadIdx.y; r < 32; r += 8) {
        int row = blockIdx.y * 32 + r;
        if (column < w && row < h) out[column * h + row] = x[row * w + column];
    }
}
