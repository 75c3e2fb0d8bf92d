# Each operation is an equation of letters, as einsum has it: operands are products of their sides.
import functools
import math

LETTERS = {
    "copy": "e->e",
    "gelu": "e->e",
    "add": "e,e->e",
    "row_sum": "rc->r",
    "softmax": "rc->rc",
    "transpose": "rc->cr",
    "matvec": "mk,k->m",
    "matmul": "mk,kn->mn",
    "batched_matmul": "bmk,bkn->bmn",
    "conv2d": "bhwi,fiss->bhwf",
    # query, key and value; heads of keys and values are g
    "attention": "bhqd,bgtd,bgtd->bhqd",
}
NAMES = {
    "e": "elements", "r": "rows", "c": "columns", "m": "m", "k": "k", "n": "n", "b": "batch",
    "h": "height", "w": "width", "i": "channels", "f": "filters", "s": "kernel",
    "q": "queries", "t": "keys", "g": "kv_heads", "d": "head_dim",
}  # fmt: skip


def sizes(letters, operation):
    names = {**NAMES, "h": "heads"} if operation["kind"] == "attention" else NAMES
    return math.prod(operation[names[each]] for each in letters)


def sides(operation):
    left, result = LETTERS[operation["kind"]].split("->")
    return [*left.split(","), result]


def flops(operation):
    *operands, _ = sides(operation)
    if "flops_each" in operation:
        return float(operation["flops_each"] * sizes(operands[0], operation))
    if operation["kind"] == "attention":
        return 4.0 * sizes("bhqtd", operation)
    if operation["kind"] == "conv2d":
        return 2.0 * sizes("bhwifss", operation)
    every = functools.reduce(lambda one, other: one | set(other), operands, set())
    return 2.0 * sizes(every, operation)


def least_bytes(operation):
    item = {"float32": 4, "float16": 2, "int8": 1}[operation["dtype"]]
    return float(item * sum(sizes(each, operation) for each in sides(operation)))


def bound(operation, card):
    ridge = card["flops_per_s"][operation["dtype"]] / card["bytes_per_s"]
    return "memory" if flops(operation) / least_bytes(operation) < ridge else "compute"


def seconds(operation, card):
    if bound(operation, card) == "memory":
        return least_bytes(operation) / card["bytes_per_s"]
    return flops(operation) / card["flops_per_s"][operation["dtype"]]


def times_faster(first, second):
    ways = {"one way": 1, "both ways": 2}
    one, other = (
        each["bytes_per_s"] / ways[each["counts"]] for each in (first, second)
    )
    return one / other
