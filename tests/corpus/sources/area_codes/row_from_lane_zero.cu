// Lane 0 divides the row's number for its warp, and the others get it by shuffles.
// launch: number<<<ceil_div(d * h, 4), 128>>>(code, visits, d, h, w)

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x & 31;
    int z = 0, y = 0;
    if (lane == 0) z = row / h, y = row % h;
    z = __shfl_sync(0xffffffff, z, 0);
    y = __shfl_sync(0xffffffff, y, 0);
    if (row >= d * h) return;
    for (int x = lane; x < w; x += 32) {
        int i = (z * h + y) * w + x;
        code[i] = 1000000 * z + 1000 * y + x;
        visits[i]++;
    }
}
