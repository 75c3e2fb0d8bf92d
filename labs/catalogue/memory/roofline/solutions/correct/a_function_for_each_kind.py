# one small function for each kind: elements read, elements written, arithmetic
def pointwise(operation, operands=1):
    n = operation["elements"]
    return operands * n, n, operation["flops_each"] * n


def rows(operation):
    n = operation["rows"] * operation["columns"]
    written = operation["rows"] if operation["kind"] == "row_sum" else n
    return n, written, operation["flops_each"] * n


def product(operation):
    m, k, n = operation["m"], operation["k"], operation.get("n", 1)
    batch = operation.get("batch", 1)
    return batch * (m + n) * k, batch * m * n, 2 * batch * m * n * k


def convolution(operation):
    o = operation
    pixels = o["batch"] * o["height"] * o["width"]
    window = o["channels"] * o["kernel"] * o["kernel"]
    read = pixels * o["channels"] + window * o["filters"]
    return read, pixels * o["filters"], 2 * pixels * o["filters"] * window


def attention(operation):
    o = operation
    wide = o["batch"] * o["head_dim"]
    query = wide * o["heads"] * o["queries"]
    key = wide * o["kv_heads"] * o["keys"]
    pairs = o["batch"] * o["heads"] * o["queries"] * o["keys"]
    return query + 2 * key, query, 2 * 2 * pairs * o["head_dim"]


KINDS = {
    "copy": pointwise,
    "gelu": pointwise,
    "add": lambda operation: pointwise(operation, 2),
    "row_sum": rows,
    "softmax": rows,
    "transpose": rows,
    "matvec": product,
    "matmul": product,
    "batched_matmul": product,
    "conv2d": convolution,
    "attention": attention,
}


def count(operation):
    read, written, arithmetic = KINDS[operation["kind"]](operation)
    size = {"float32": 4, "float16": 2, "int8": 1}[operation["dtype"]]
    return (read + written) * size, arithmetic


def flops(operation):
    return count(operation)[1]


def least_bytes(operation):
    return count(operation)[0]


def bound(operation, card):
    moved, arithmetic = count(operation)
    ridge = card["flops_per_s"][operation["dtype"]] / card["bytes_per_s"]
    return "compute" if arithmetic / moved > ridge else "memory"


def seconds(operation, card):
    moved, arithmetic = count(operation)
    peak = card["flops_per_s"][operation["dtype"]]
    return max(moved / card["bytes_per_s"], arithmetic / peak)


def times_faster(first, second):
    ways = {"both ways": 2, "one way": 1}
    rates = [each["bytes_per_s"] / ways[each["counts"]] for each in (first, second)]
    return rates[0] / rates[1]
