// Lanes of one row find each other by a match; the first of them divides for all, by shuffles.
// launch: number<<<ceil_div(d * h * w, 128), 128>>>(code, visits, d, h, w)

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    int i = blockIdx.x * 128 + threadIdx.x, lane = threadIdx.x & 31;
    unsigned here = __ballot_sync(0xffffffffu, i < d * h * w);
    if (i >= d * h * w) return;
    int row = i / w;
    unsigned mine = __match_any_sync(here, row);
    int leader = __ffs(mine) - 1, packed = 0;
    if (lane == leader) packed = row / h << 16 | row % h;
    packed = __shfl_sync(mine, packed, leader);
    int z = packed >> 16, y = packed & 0xffff;
    code[i] = 1000000 * z + 1000 * y + (i - row * w);
    visits[i] += 1;
}
