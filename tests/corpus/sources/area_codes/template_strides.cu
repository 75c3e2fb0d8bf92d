// No extern "C", and templates for a box whose grid may be smaller than the box.
// launch: number<<<(2, 5, 3), (32, 2, 2)>>>(code, visits, d, h, w)

template <class Visit>
__device__ void for_each(dim3 first, dim3 step, dim3 end, Visit visit) {
    for (unsigned z = first.z; z < end.z; z += step.z)
        for (unsigned y = first.y; y < end.y; y += step.y)
            for (unsigned x = first.x; x < end.x; x += step.x) visit(z, y, x);
}

__global__ void number(int* code, int* visits, int d, int h, int w) {
    dim3 first(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y * blockDim.y + threadIdx.y,
               blockIdx.z * blockDim.z + threadIdx.z);
    dim3 step(gridDim.x * blockDim.x, gridDim.y * blockDim.y, gridDim.z * blockDim.z);
    for_each(first, step, dim3(w, h, d), [&](int z, int y, int x) {
        int i = (z * h + y) * w + x;
        code[i] = 1000000 * z + 1000 * y + x;
        visits[i]++;
    });
}
