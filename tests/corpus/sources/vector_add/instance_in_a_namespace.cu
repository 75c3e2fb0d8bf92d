// Rule in a block comment, with dim3 and a stream: an instance of a template of a namespace.
/*
 * launch: pointwise::added<float, 2><<<dim3((n + 511) / 512), dim3(256, 1, 1), 0, stream>>>(x, y, out, n, 0.0f)
 */
namespace pointwise {
template <class T, int EACH>
__global__ void __launch_bounds__(256) added(const T* x, const T* y, T* out, unsigned n, T floor) {
    for (int k = 0; k < EACH; ++k) {
        const unsigned i = (blockIdx.x * EACH + k) * blockDim.x + threadIdx.x;
        if (i >= n) return;
        const T sum = x[i] + y[i];
        out[i] = sum < floor ? floor : sum;
    }
}
}
