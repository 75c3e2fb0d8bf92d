// Visits are counted by atomicCAS in a loop, as it is done for types without an atomic.
// launch: number<<<(ceil_div(w, 32), h, d), 32>>>(code, visits, d, h, w)

__device__ void count(int* place) {
    int seen = *place, found;
    do {
        found = seen;
        seen = atomicCAS(place, found, found + 1);
    } while (seen != found);
}

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    if (x >= w) return;
    code[(z * h + y) * w + x] = 1000000 * z + 1000 * y + x;
    count(&visits[(z * h + y) * w + x]);
}
