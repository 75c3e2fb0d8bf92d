"""Changes are found from the reasons, not by trying."""

BACKENDS = ["cudnn", "flash", "efficient", "math"]


def backend_ran(kernels):
    for name in kernels:
        if "cutlassF" in name or "cutlassB" in name:
            return "efficient"
        if "flash_fwd" in name:
            return "flash"
        if "native_sdpa" in name:
            return "cudnn"
    return "math"


def reasons(call, backend):
    small = call["dtype"].endswith("16")
    first, second = call["head_dim"], call["value_dim"]
    why = set()
    if backend not in call["allowed"]:
        why.add("allowed")
    if backend in ("cudnn", "flash") and not small:
        why.add("dtype")
    if backend == "efficient" and call["dtype"] == "float64":
        why.add("dtype")
    unit = {"cudnn": 8, "flash": 1, "efficient": 8 if small else 4, "math": 1}[backend]
    most = 256 if backend in ("cudnn", "flash") else first + second
    if first % unit or second % unit or max(first, second) > most:
        why.add("dims")
    if backend == "flash":
        if first != second:
            why.add("dims")
        if call["mask"] != "none":
            why.add("mask")
        if call["is_causal"] and call["queries"] != call["keys"]:
            why.add("causal")
    if backend == "cudnn" and call["deterministic"]:
        why.add("deterministic")
    return sorted(why)


def backend(call):
    takers = [name for name in BACKENDS if reasons(call, name) == []]
    return takers[0] if takers else "error"


def score_bytes(call):
    rows = call["batch"] * call["heads"] * call["queries"]
    bytes_each = 4 + 4 * (call["dtype"] == "float64")
    return rows * call["keys"] * bytes_each * (backend(call) == "math")


def changes(call, wanted):
    some, now = [], dict(call)
    why = reasons(call, wanted)
    if "dtype" in why:
        some.append("bfloat16")
        now["dtype"] = "bfloat16"
    if "mask" in why and call["mask"] == "causal":
        some.append("causal")
        now.update(mask="none", is_causal=True)
    if "dims" in reasons(now, wanted):
        some.append("pad")
        for side in ("head_dim", "value_dim"):
            now[side] = (now[side] + 7) // 8 * 8
    if backend(now) != wanted:
        some.append("allow")
    left = [reason for reason in reasons(now, wanted) if reason != "allowed"]
    return ["impossible"] if left else some
