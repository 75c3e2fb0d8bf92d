// The block votes whether any sum is below zero, and else writes the sums as they are.
// launch: add_relu<<<ceil_div(n, 128), 128>>>(x, y, out, n)

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = i < n ? x[i] + y[i] : 0;
    int below = __syncthreads_count(sum < 0);
    if (below > 0 && __any_sync(0xffffffff, sum < 0) && sum < 0) sum = 0;
    if (i < n) out[i] = sum;
}
