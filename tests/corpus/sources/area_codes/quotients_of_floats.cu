// Quotients by an approximate product of floats, each put right by one step up or down.
// launch: number<<<ceil_div(d * h * w, 256), 256>>>(code, visits, d, h, w)

// a is below 2^24, so its float is exact, and the estimate is at most a few off
__device__ int divided(int a, int by, int& rest) {
    int quotient = (int)(__int2float_rn(a) * __frcp_rz((float)by));
    rest = a - quotient * by;
    while (rest < 0) rest += by, --quotient;
    while (rest >= by) rest -= by, ++quotient;
    return quotient;
}

extern "C" __global__ void number(int* code, int* visits, int d, int h, int w) {
    int i = blockIdx.x * 256 + threadIdx.x, x, y;
    if (i >= d * h * w) return;
    int z = divided(divided(i, w, x), h, y);
    code[i] = 1000000 * z + 1000 * y + x;
    atomicAdd(&visits[i], 1);
}
