# Structural pattern matching over the operation's keys.
BYTES = {"float32": 4, "float16": 2, "int8": 1}


def counted(operation):
    match operation:
        case {"kind": "copy" | "gelu", "elements": n, "flops_each": each}:
            return each * n, 2 * n
        case {"kind": "add", "elements": n, "flops_each": each}:
            return each * n, 3 * n
        case {"kind": "row_sum", "rows": r, "columns": c, "flops_each": each}:
            return each * r * c, r * c + r
        case {
            "kind": "softmax" | "transpose",
            "rows": r,
            "columns": c,
            "flops_each": each,
        }:
            return each * r * c, 2 * r * c
        case {"kind": "matvec", "m": m, "k": k}:
            return 2 * m * k, m * k + k + m
        case {"kind": "batched_matmul", "batch": b, "m": m, "n": n, "k": k}:
            return 2 * b * m * n * k, b * (m * k + k * n + m * n)
        case {"kind": "matmul", "m": m, "n": n, "k": k}:
            return 2 * m * n * k, m * k + k * n + m * n
        case {
            "kind": "conv2d",
            "batch": b,
            "height": h,
            "width": w,
            "channels": c,
            "filters": f,
            "kernel": s,
        }:
            return 2 * b * h * w * c * f * s * s, b * h * w * (c + f) + f * c * s * s
        case {
            "batch": b,
            "heads": h,
            "kv_heads": v,
            "queries": q,
            "keys": k,
            "head_dim": d,
        }:
            return 4 * b * h * q * k * d, 2 * b * h * q * d + 2 * b * v * k * d


def flops(operation):
    return float(counted(operation)[0])


def least_bytes(operation):
    return float(counted(operation)[1] * BYTES[operation["dtype"]])


def both(operation, card):
    compute_s = flops(operation) / card["flops_per_s"][operation["dtype"]]
    return {
        "memory": least_bytes(operation) / card["bytes_per_s"],
        "compute": compute_s,
    }


def bound(operation, card):
    times = both(operation, card)
    return max(times, key=times.get)


def seconds(operation, card):
    return max(both(operation, card).values())


def times_faster(first, second):
    a, b = (
        {**x, "n": x["bytes_per_s"] / (1 + (x["counts"] == "both ways"))}
        for x in (first, second)
    )
    return a["n"] / b["n"]
