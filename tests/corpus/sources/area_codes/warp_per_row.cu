// A warp for each row of all layers, whose lanes stride over the columns.
// launch: number<<<ceil_div(d * h, 8), 256>>>(code, visits, d, h, w)

struct Row {
    int z, y;
    __device__ Row(int number, int h) : z(number / h), y(number - z * h) {}
    __device__ int code() const { return 1000000 * z + 1000 * y; }
};

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
    if (warp >= d * h) return;
    Row row(warp, h);
    for (int x = threadIdx.x % warpSize; x < w; x += warpSize) {
        code[warp * w + x] = row.code() + x;
        visits[warp * w + x] += 1;
    }
}
