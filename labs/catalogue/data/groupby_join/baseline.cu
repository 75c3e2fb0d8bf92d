// launch: nested_loops<<<ceil_div(m, 256), 256>>>(key, amount, probe, least, matches, total, n, m)

// right, and every probe looks at every row
extern "C" __global__ void nested_loops(const int* key, const int* amount, const int* probe,
                                        int least, int* matches, int* total, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    int wanted = probe[i], count = 0, sum = 0;
    for (int row = 0; row < n; row++)
        if (key[row] == wanted && amount[row] >= least) {
            count += 1;
            sum += amount[row];
        }
    bool is_null = wanted < 0;
    matches[i] = is_null ? 0 : count;
    total[i] = is_null ? 0 : sum;
}
