// Division by the sides as a product with a 64-bit reciprocal, which is exact in this range.
// launch: number<<<ceil_div(d * h * w, 192), 192>>>(code, visits, d, h, w)

__device__ unsigned divided(unsigned a, unsigned long long reciprocal) { return (unsigned)((a * reciprocal) >> 40); }

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (unsigned)(d * h * w)) return;
    // rounded up: right for a below 2^20 times sides below 2^10, and corrected beyond
    unsigned long long of_w = ((1ull << 40) + w - 1) / w, of_h = ((1ull << 40) + h - 1) / h;
    unsigned row = i < (1u << 20) ? divided(i, of_w) : i / w;
    unsigned z = row < (1u << 20) ? divided(row, of_h) : row / h;
    code[i] = 1000000 * z + 1000 * (row - z * h) + (i - row * w);
    visits[i] += 1;
}
