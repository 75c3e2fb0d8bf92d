// launch: number<<<ceil_div(d * h * w, 128), 128>>>(code, visits, h, w, d * h * w)

extern "C" __global__ void number(int* code, int* visits, int h, int w, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int x = i % w, y = i / w % h, z = i / (w * h);
    code[i] = 1000000 * z + 1000 * y + x;
    visits[i] += 1;
}
