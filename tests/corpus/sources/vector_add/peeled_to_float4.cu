// Floats up to the next multiple of 16 bytes, then float4, then what is left.
// launch: add_relu<<<max(1, ceil_div(n, 1024)), 256>>>(x, y, out, n)

struct alignas(16) Four {
    float v[4];
};

__device__ float relu(float v) { return v < 0 ? 0 : v; }

extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    size_t where = (size_t)x & 15;
    if (where != ((size_t)y & 15) || where != ((size_t)out & 15)) {
        for (int i = t; i < n; i += threads) out[i] = relu(x[i] + y[i]);
        return;
    }
    int head = min(n, int((16 - where) % 16 / 4));
    int fours = (n - head) / 4;
    if (t < head) out[t] = relu(x[t] + y[t]);
    for (int k = t; k < fours; k += threads) {
        Four a = ((const Four*)(x + head))[k], b = ((const Four*)(y + head))[k], sum;
        for (int j = 0; j < 4; j++) sum.v[j] = relu(a.v[j] + b.v[j]);
        ((Four*)(out + head))[k] = sum;
    }
    int rest = head + 4 * fours + t;
    if (rest < n) out[rest] = relu(x[rest] + y[rest]);
}
