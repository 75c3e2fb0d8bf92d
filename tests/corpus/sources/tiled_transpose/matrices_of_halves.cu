// ldmatrix.trans turns upper and lower halves of the floats, which are joined afterwards.
// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), 32>>>(x, out, w, h)

__device__ void turned(unsigned (&to)[4], const unsigned short* row) {
    unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
}

extern "C" __global__ void transpose(const unsigned* x, unsigned* out, int w, int h) {
    __shared__ alignas(16) unsigned short upper[32][40], lower[32][40];
    __shared__ alignas(16) uint2 rows[32][20];
    int left = blockIdx.x * 32, top = blockIdx.y * 32, lane = threadIdx.x;
    for (int r = 0; r < 32; r++) {
        unsigned v = top + r < h && left + lane < w ? x[(top + r) * w + left + lane] : 0;
        upper[r][lane] = v >> 16;
        lower[r][lane] = v;
    }
    __syncwarp();
    for (int c = 0; c < 32; c += 8) {
        // matrix m has rows 8 m and up: lane 8 m + r gives the address of row r of it
        unsigned high[4], low[4];
        turned(high, &upper[lane][c]);
        turned(low, &lower[lane][c]);
        for (int m = 0; m < 4; m++)
            rows[c + lane / 4][4 * m + lane % 4] =
                make_uint2(__byte_perm(low[m], high[m], 0x5410), __byte_perm(low[m], high[m], 0x7632));
    }
    __syncwarp();
    for (int c = 0; c < 32 && left + c < w; c++)
        if (top + lane < h) out[(left + c) * h + top + lane] = ((const unsigned*)rows[c])[lane];
}
