# nothing quite reaches its roof: a tenth is added, which the 25 % leave room for

ITEM_BYTES = {"float32": 4, "float16": 2, "int8": 1}


def _elements_and_flops(operation):
    """Give elements read, elements written, and the arithmetic."""
    of = operation.get
    kind = operation["kind"]
    if kind in ("copy", "gelu", "add"):
        elements = of("elements")
        read = 2 * elements if kind == "add" else elements
        return read, elements, of("flops_each") * elements
    if kind in ("row_sum", "softmax", "transpose"):
        elements = of("rows") * of("columns")
        written = of("rows") if kind == "row_sum" else elements
        return elements, written, of("flops_each") * elements
    if kind == "matvec":
        m, k = of("m"), of("k")
        return m * k + k, m, 2 * m * k
    if kind in ("matmul", "batched_matmul"):
        batch, m, n, k = of("batch") or 1, of("m"), of("n"), of("k")
        return batch * (m * k + k * n), batch * m * n, 2 * batch * m * n * k
    if kind == "conv2d":
        pixels = of("batch") * of("height") * of("width")
        weights = of("filters") * of("channels") * of("kernel") ** 2
        read = pixels * of("channels") + weights
        return read, pixels * of("filters"), 2 * pixels * weights
    # two products for each pair of query and key: its score, and its share of the value
    a_query = of("batch") * of("heads") * of("head_dim")
    cache = 2 * of("batch") * of("kv_heads") * of("keys") * of("head_dim")
    queries = a_query * of("queries")
    return queries + cache, queries, 4 * queries * of("keys")


def flops(operation):
    return _elements_and_flops(operation)[2]


def least_bytes(operation):
    read, written, _ = _elements_and_flops(operation)
    return (read + written) * ITEM_BYTES[operation["dtype"]]


def _times(operation, card):
    memory_s = least_bytes(operation) / card["bytes_per_s"]
    return memory_s, flops(operation) / card["flops_per_s"][operation["dtype"]]


def bound(operation, card):
    memory_s, compute_s = _times(operation, card)
    return "memory" if memory_s > compute_s else "compute"


def seconds(operation, card):
    return 1.1 * max(_times(operation, card))


def times_faster(first, second):
    def one_way(link):
        return link["bytes_per_s"] / (2 if link["counts"] == "both ways" else 1)

    return one_way(first) / one_way(second)
