# A decorator registers a function for each kind, whose names are the operation's keys.

COUNTED = {}
SIZE = dict(float32=4, float16=2, int8=1)


def kind(*names):
    def register(function):
        wanted = function.__code__.co_varnames[: function.__code__.co_argcount]
        for name in names:
            COUNTED[name] = lambda o: function(*(o[each] for each in wanted))
        return function

    return register


@kind("copy", "gelu")
def one_in(elements, flops_each):
    return elements * flops_each, 2 * elements


@kind("add")
def two_in(elements, flops_each):
    return elements * flops_each, 3 * elements


@kind("softmax", "transpose")
def matrix(rows, columns, flops_each):
    return rows * columns * flops_each, 2 * rows * columns


@kind("row_sum")
def sums(rows, columns, flops_each):
    return rows * columns * flops_each, rows * (columns + 1)


@kind("matvec")
def vector(m, k):
    return 2 * m * k, m * k + m + k


@kind("matmul")
def product(m, n, k):
    return 2 * m * n * k, m * n + m * k + n * k


@kind("batched_matmul")
def products(batch, m, n, k):
    return tuple(batch * each for each in product(m, n, k))


@kind("conv2d")
def convolution(batch, channels, height, width, filters, kernel):
    weights, pixels = filters * channels * kernel**2, batch * height * width
    return 2 * pixels * weights, pixels * (channels + filters) + weights


@kind("attention")
def attention(batch, heads, kv_heads, queries, keys, head_dim):
    moved = heads * queries + kv_heads * keys
    return 4 * batch * heads * queries * keys * head_dim, 2 * batch * head_dim * moved


def flops(operation):
    return COUNTED[operation["kind"]](operation)[0] * 1.0


def least_bytes(operation):
    return COUNTED[operation["kind"]](operation)[1] * 1.0 * SIZE[operation["dtype"]]


def seconds(operation, card):
    arithmetic = flops(operation) / card["flops_per_s"][operation["dtype"]]
    return max(least_bytes(operation) / card["bytes_per_s"], arithmetic)


def bound(operation, card):
    is_memory = (
        seconds(operation, card) * card["bytes_per_s"]
        <= least_bytes(operation) * 1.0001
    )
    return ("compute", "memory")[is_memory]


def times_faster(first, second):
    one, other = (
        x["bytes_per_s"] * (0.5 if "both" in x["counts"] else 1)
        for x in (first, second)
    )
    return one / other
