// Each thread has the same column of two rows, and a tail of one row where h is odd.
// launch: number<<<(ceil_div(w, 64), ceil_div(h, 2), d), 64>>>(code, visits, d, h, w)

extern "C" __global__ void number(int* __restrict__ code, int* __restrict__ visits, int d, int h, int w) {
    const int x = blockIdx.x * 64 + threadIdx.x, y = 2 * blockIdx.y, z = blockIdx.z;
    if (x >= w) return;
    int* c = code + (z * h + y) * w + x;
    int* v = visits + (z * h + y) * w + x;
    const int first = 1000000 * z + 1000 * y + x, here = *v;
    *c = first;
    *v = here + 1;
    if (y + 1 < h) {
        c[w] = first + 1000;
        v[w] += 1;
    }
}
