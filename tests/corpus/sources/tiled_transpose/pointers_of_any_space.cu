// One function moves lines between global and shared memory: its pointers are generic.
// launch: transpose<<<(ceil_div(w, 32), ceil_div(h, 32)), (32, 4)>>>(x, out, w, h)

struct Lines {
    float* begin;
    long line, each;
    int lines, length;
};

__device__ __noinline__ void move(const Lines& from, const Lines& to) {
    for (int i = threadIdx.y; i < from.lines; i += blockDim.y)
        if (threadIdx.x < from.length)
            to.begin[i * to.line + threadIdx.x * to.each] = from.begin[i * from.line + threadIdx.x * from.each];
}

extern "C" __global__ void transpose(float* x, float* out, int w, int h) {
    __shared__ float tile[32 * 33];
    long left = blockIdx.x * 32, top = blockIdx.y * 32;
    int columns = min(32l, w - left), rows = min(32l, h - top);
    Lines at[4] = {{x + top * w + left, w, 1, rows, columns},
                   {tile, 33, 1, rows, columns},
                   {tile, 1, 33, columns, rows},
                   {out + left * h + top, h, 1, columns, rows}};
#pragma unroll 1
    for (int step = 0; step < 4; step += 2) {
        move(at[step], at[step + 1]);
        __syncthreads();
    }
}
