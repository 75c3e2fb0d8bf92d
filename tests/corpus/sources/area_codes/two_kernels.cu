// One kernel writes the codes, another counts the visits.
// launch: number<<<(ceil_div(w, 256), h, d), 256>>>(code, h, w)
// launch: visit<<<ceil_div(d * h * w, 256), 256>>>(visits, d * h * w)

extern "C" __global__ void number(int* code, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < w) code[(blockIdx.z * h + blockIdx.y) * w + x] = 1000000 * blockIdx.z + 1000 * blockIdx.y + x;
}

extern "C" __global__ void visit(int* visits, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) ++visits[i];
}
