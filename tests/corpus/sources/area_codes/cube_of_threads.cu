// Blocks of 8 x 8 x 8 threads: a warp has four rows of eight columns.
// launch: number<<<(ceil_div(w, 8), ceil_div(h, 8), ceil_div(d, 8)), (8, 8, 8)>>>(code, visits, d, h, w)

__device__ int3 operator+(int3 a, int3 b) { return make_int3(a.x + b.x, a.y + b.y, a.z + b.z); }

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    int3 at = make_int3(8 * blockIdx.x, 8 * blockIdx.y, 8 * blockIdx.z) +
              make_int3(threadIdx.x, threadIdx.y, threadIdx.z);
    if (!(at.x < w & at.y < h & at.z < d)) return;
    long long i = ((long long)at.z * h + at.y) * w + at.x;
    code[i] = (at.z * 1000 + at.y) * 1000 + at.x;
    visits[i] = visits[i] + 1;
}
