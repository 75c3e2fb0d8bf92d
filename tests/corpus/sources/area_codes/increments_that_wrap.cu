// atomicInc for the visits, whose limit is never met; the grid's sides are exchanged.
// launch: number<<<(d, ceil_div(h, 4), ceil_div(w, 32)), (32, 4)>>>(code, visits, d, h, w)

extern "C" __global__ void number(int* code, unsigned* visits, int d, int h, int w) {
    int x = blockIdx.z * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.x;
    if (x >= w || y >= h) return;
    int i = (z * h + y) * w + x;
    code[i] = 1000000 * z + 1000 * y + x;
    atomicInc(visits + i, 0xffffffffu);
}
