// A grid stride whose coordinates are divided out once and carried from then on.
// launch: number<<<4, 128>>>(code, visits, d, h, w)

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    int count = d * h * w, step = gridDim.x * blockDim.x;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = i % w, y = i / w % h, z = i / w / h;
    while (i < count) {
        code[i] = 1000000 * z + 1000 * y + x;
        visits[i] += 1;
        i += step;
        x += step;
        while (x >= w) x -= w, y++;
        while (y >= h) y -= h, z++;
    }
}
