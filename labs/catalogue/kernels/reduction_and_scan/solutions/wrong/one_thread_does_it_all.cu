// launch: all<<<1, 1>>>(x, k, total, prefix, n)

// right, and no work is shared
extern "C" __global__ void all(const float* x, const int* k, float* total, int* prefix,
                               int n) {
    float sum = 0;
    int before = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i];
        before += k[i];
        prefix[i] = before;
    }
    total[0] = sum;
}
