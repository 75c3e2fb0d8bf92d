"""Name what limits an operation on a card. Fill in the five functions.

They are called with plain data, such as

    {"kind": "matmul", "dtype": "float16", "m": 4096, "n": 4096, "k": 1024}
    {"name": "H200", "bytes_per_s": 4800000000000,
     "flops_per_s": {"float32": 67e12, "float16": 989e12, "int8": 1979e12}}
"""


def flops(operation):
    """Count its arithmetic; a multiplication and an addition are two."""
    kind = operation["kind"]
    if kind == "add":
        return operation["flops_each"] * operation["elements"]
    return 0.0


def least_bytes(operation):
    """Count what must move: operands once, results once."""
    return 0.0


def bound(operation, card):
    """Say "memory" or "compute"."""
    return "memory"


def seconds(operation, card):
    """Predict the time at best."""
    return 0.0


def times_faster(first, second):
    """Compare two links, one way each."""
    return first["bytes_per_s"] / second["bytes_per_s"]
