// Four columns at a time where 4 divides the rows and both buffers begin at 16 bytes.
// launch: number<<<(ceil_div(w, 128), h, d), 32>>>(code, visits, d, h, w)

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    int y = blockIdx.y, z = blockIdx.z, first = 1000000 * z + 1000 * y;
    size_t row = (size_t(z) * h + y) * w;
    if (w % 4 == 0 && (((size_t)code | (size_t)visits) & 15) == 0) {
        int x = blockIdx.x * 128 + 4 * threadIdx.x;
        if (x >= w) return;
        int c = first + x;
        *(int4*)(code + row + x) = make_int4(c, c + 1, c + 2, c + 3);
        int4 v = *(int4*)(visits + row + x);
        *(int4*)(visits + row + x) = make_int4(v.x + 1, v.y + 1, v.z + 1, v.w + 1);
        return;
    }
    int end = min(w, int(blockIdx.x + 1) * 128);
    for (int x = blockIdx.x * 128 + threadIdx.x; x < end; x += 32) {
        code[row + x] = first + x;
        visits[row + x]++;
    }
}
