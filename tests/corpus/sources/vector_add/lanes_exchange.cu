// Lanes load each other's elements and exchange them by a shuffle that all lanes take part in.
// launch: add_relu<<<ceil_div(n, 256), 256>>>(x, y, out, n)

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ 5;
    float sum = 0;
    if (other < n) sum = x[other] + y[other];
    sum = __shfl_xor_sync(0xffffffffu, sum, 5);
    if (i < n) out[i] = sum < 0 ? 0 : sum;
}
