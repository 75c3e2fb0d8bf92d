// cp.async fills three stages ahead, with zeros beyond the edges.
// launch: matmul<<<(ceil_div(n, 16), ceil_div(m, 16)), (16, 16)>>>(a, b, c, m, n, k)

__device__ void bring(float* to, const float* from, bool is_there) {
    unsigned shared = (unsigned)__cvta_generic_to_shared(to);
    int bytes = is_there ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(from), "r"(bytes) : "memory");
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float left[3][16][16], right[3][16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
    int steps = (k + 15) / 16;
    float sum = 0;
    auto stage = [&](int step) {
        int d = step * 16;
        bool has_left = row < m && d + x < k, has_right = d + y < k && column < n;
        bring(&left[step % 3][y][x], has_left ? a + row * k + d + x : a, has_left);
        bring(&right[step % 3][y][x], has_right ? b + (d + y) * n + column : b, has_right);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    stage(0);
    stage(1);
    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        stage(step + 2);
        for (int d = 0; d < 16; d++) sum += left[step % 3][y][d] * right[step % 3][d][x];
    }
    if (row < m && column < n) c[row * n + column] = sum;
}
