// A grid of one side goes through tiles in groups of four rows, so that L2 is shared.
// launch: matmul<<<ceil_div(n, 64) * ceil_div(m, 32), (16, 8)>>>(a, b, c, m, n, k)

template <int ROWS, int COLUMNS, int DEPTH>
struct Product {
    float left[DEPTH][ROWS + 1], right[DEPTH][COLUMNS];

    template <typename View>
    __device__ static void load(float* to, int pitch_of_line, int pitch, int lines, int length, View view) {
        for (int i = threadIdx.y * 16 + threadIdx.x; i < lines * length; i += 128)
            to[i / length * pitch_of_line + i % length * pitch] = view(i / length, i % length);
    }
};

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    using Tile = Product<32, 64, 16>;
    __shared__ Tile tile;
    const int high = (m + 31) / 32, wide = (n + 63) / 64, in_group = 4 * wide;
    const int first = blockIdx.x / in_group * 4, rows = min(4, high - first);
    const int top = (first + blockIdx.x % in_group % rows) * 32, side = blockIdx.x % in_group / rows * 64;
    float sum[4][4] = {};
    for (int from = 0; from < k; from += 16) {
        // a is turned on its way
        Tile::load(&tile.left[0][0], 1, 33, 32, 16, [=](int i, int d) {
            return top + i < m && from + d < k ? a[(top + i) * k + from + d] : 0.f;
        });
        Tile::load(&tile.right[0][0], 64, 1, 16, 64, [=](int d, int j) {
            return from + d < k && side + j < n ? b[(from + d) * n + side + j] : 0.f;
        });
        __syncthreads();
#pragma unroll
        for (int d = 0; d < 16; d++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    sum[i][j] += tile.left[d][threadIdx.y + 8 * i] * tile.right[d][threadIdx.x + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int row = top + threadIdx.y + 8 * i, column = side + threadIdx.x + 16 * j;
            if (row < m && column < n) c[row * n + column] = sum[i][j];
        }
}
