// Each warp has 128 elements of its own, and its lanes stride over them.
// launch: add_relu<<<ceil_div(n, 1024), (32, 8)>>>(x, y, out, n)

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int lane = threadIdx.x, warp = blockIdx.x * blockDim.y + threadIdx.y;
    int end = min(n, 128 * (warp + 1));
    for (int i = 128 * warp + lane; i < end; i += warpSize) {
        float sum = x[i] + y[i];
        out[i] = sum < 0 ? 0 : sum;
    }
}
