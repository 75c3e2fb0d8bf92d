# Each operation is a list of shapes that are read and written, whose products are summed.
from math import prod


def shapes(o):
    kind, get = o["kind"], o.get
    if kind in ("copy", "gelu", "add"):
        one = (o["elements"],)
        return [one] * (3 if kind == "add" else 2), o["flops_each"] * o["elements"]
    if kind in ("row_sum", "softmax", "transpose"):
        whole = (o["rows"], o["columns"])
        last = (o["rows"],) if kind == "row_sum" else whole
        return [whole, last], o["flops_each"] * prod(whole)
    if kind == "conv2d":
        batch, height, width = o["batch"], o["height"], o["width"]
        filters = (o["filters"], o["channels"], o["kernel"], o["kernel"])
        picture = (batch, o["channels"], height, width)
        result = (batch, o["filters"], height, width)
        return [picture, filters, result], 2 * prod(result) * prod(filters[1:])
    if kind == "attention":
        query = (o["batch"], o["heads"], o["queries"], o["head_dim"])
        key = (o["batch"], o["kv_heads"], o["keys"], o["head_dim"])
        return [query, key, key, query], 4 * prod(query) * o["keys"]
    b, m, n, k = get("batch", 1), o["m"], get("n", 1), o["k"]
    return [(b, m, k), (b, k, n), (b, m, n)], 2 * b * m * n * k


def flops(operation):
    return float(shapes(operation)[1])


def least_bytes(operation):
    size = {"float32": 4.0, "float16": 2.0, "int8": 1.0}[operation["dtype"]]
    return size * sum(map(prod, shapes(operation)[0]))


def intensity(operation):
    return flops(operation) / least_bytes(operation)


def ridge(operation, card):
    return card["flops_per_s"][operation["dtype"]] / card["bytes_per_s"]


def bound(operation, card):
    return "compute" if intensity(operation) >= ridge(operation, card) else "memory"


def seconds(operation, card):
    # what can be reached at this intensity
    peak = card["flops_per_s"][operation["dtype"]]
    if not flops(operation):
        return least_bytes(operation) / card["bytes_per_s"]
    return flops(operation) / min(peak, card["bytes_per_s"] * intensity(operation))


def times_faster(first, second):
    ways = {"one way": 1, "both ways": 2}
    ratio = first["bytes_per_s"] / second["bytes_per_s"]
    return ratio * ways[second["counts"]] / ways[first["counts"]]
