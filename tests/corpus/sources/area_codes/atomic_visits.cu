// Visits are counted with atomics, which do no harm here.
// launch: number<<<(h, d), 96>>>(code, visits, d, h, w)

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    for (int x = threadIdx.x; x < w; x += blockDim.x) {
        int y = blockIdx.x, z = blockIdx.y;
        int i = (z * gridDim.x + y) * w + x;
        code[i] = 1000000 * z + 1000 * y + x;
        atomicAdd(visits + i, 1);
    }
}
