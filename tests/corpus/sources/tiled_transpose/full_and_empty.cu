// Two warps fill and two empty, in turns of two tiles: a barrier says full, another empty.
// launch: transpose<<<min(6, ceil_div(w, 32) * ceil_div(h, 32)), 128>>>(x, out, w, h)

__device__ __forceinline__ void wait(int barrier) { asm volatile("barrier.sync %0, 128;" ::"r"(barrier) : "memory"); }
__device__ __forceinline__ void tell(int barrier) { asm volatile("barrier.arrive %0, 128;" ::"r"(barrier) : "memory"); }

extern "C" __global__ void transpose(const float* x, float* out, int w, int h) {
    __shared__ float tile[2][32][33];
    // barriers 1 and 2 are full, 3 and 4 are empty
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int wide = (w + 31) / 32, tiles = wide * ((h + 31) / 32);
    if (warp < 2) {
        int turn = 0;
        for (int at = blockIdx.x; at < tiles; at += gridDim.x, turn++) {
            int left = at % wide * 32, top = at / wide * 32, which = turn & 1;
            if (turn >= 2) wait(3 + which);
            for (int r = warp; r < 32; r += 2)
                if (top + r < h && left + lane < w) tile[which][r][lane] = x[(size_t)(top + r) * w + left + lane];
            tell(1 + which);
        }
    } else {
        int turn = 0;
        for (int at = blockIdx.x; at < tiles; at += gridDim.x, turn++) {
            int left = at % wide * 32, top = at / wide * 32, which = turn & 1;
            wait(1 + which);
            for (int c = warp - 2; c < 32; c += 2)
                if (left + c < w && top + lane < h) out[(size_t)(left + c) * h + top + lane] = tile[which][lane][c];
            // nobody waits for the last two
            if (at + 2 * gridDim.x < tiles) tell(3 + which);
        }
    }
}
