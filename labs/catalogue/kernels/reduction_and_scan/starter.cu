// One thread sums, and the others look on. The running sums are missing.
// launch: slow<<<1, 32>>>(x, k, total, prefix, n)

// You may launch several kernels, one after the other, each on a line like the one above,
// with scratch memory between them: a line such as "scratch: part float32[ceil_div(n, 256)]"
// behind // gives a buffer that launches can name.
extern "C" __global__ void slow(const float* x, const int* k, float* total, int* prefix, int n) {
    if (threadIdx.x > 0) return;
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    total[0] = sum;
}
