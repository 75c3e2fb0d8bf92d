// A grid of 2 x 2 x 2 small blocks strides along all three sides, whatever the box.
// launch: number<<<(2, 2, 2), (32, 3, 2)>>>(code, visits, d, h, w)

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    const dim3 step(gridDim.x * blockDim.x, gridDim.y * blockDim.y, gridDim.z * blockDim.z);
    const uint3 first = {blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y,
                         blockIdx.z * blockDim.z + threadIdx.z};
    for (unsigned z = first.z; z < d; z += step.z)
        for (unsigned y = first.y; y < h; y += step.y)
            for (unsigned x = first.x; x < w; x += step.x) {
                unsigned i = (z * h + y) * w + x;
                code[i] = 1000000 * z + 1000 * y + x;
                ++visits[i];
            }
}
