// launch: number<<<(ceil_div(h, 32), ceil_div(w, 4), ceil_div(d, 2)), (32, 4, 2)>>>(code, visits, d, h, w)

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    int x = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= w || y >= h || z >= d) return;
    int i = (z * h + y) * w + x;
    code[i] = 1000000 * z + 1000 * y + x;
    visits[i] += 1;
}
