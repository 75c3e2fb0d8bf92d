"""Which backend of attention runs, why the others do not, and how to change that."""

import itertools

ORDER = ("cudnn", "flash", "efficient", "math")
HALVES = ("bfloat16", "float16")
CHANGES = ("bfloat16", "causal", "pad", "allow")


def backend_ran(kernels):
    """Look for the one kernel that a fused backend has."""
    for name in kernels:
        if name.startswith("cudnn") and "sdpa" in name:
            return "cudnn"
        if "pytorch_flash" in name:
            return "flash"
        if name.startswith("fmha_cutlass"):
            return "efficient"
    return "math"


def reasons(call, backend):
    """Ask one condition after the other."""
    is_half = call["dtype"] in HALVES
    dims = (call["head_dim"], call["value_dim"])
    why = []
    if backend not in call["allowed"]:
        why.append("allowed")
    if backend == "cudnn":
        if not is_half:
            why.append("dtype")
        if any(dim % 8 or dim > 256 for dim in dims):
            why.append("dims")
        if call["deterministic"]:
            why.append("deterministic")
    if backend == "flash":
        if not is_half:
            why.append("dtype")
        if call["mask"] != "none":
            why.append("mask")
        if dims[0] != dims[1] or dims[0] > 256:
            why.append("dims")
        if call["is_causal"] and call["queries"] != call["keys"]:
            why.append("causal")
    if backend == "efficient":
        if call["dtype"] == "float64":
            why.append("dtype")
        if any(dim % (8 if is_half else 4) for dim in dims):
            why.append("dims")
    return why


def backend(call):
    """Take the first that has no reason against the call."""
    for name in ORDER:
        if not reasons(call, name):
            return name
    return "error"


def score_bytes(call):
    """Only the math backend writes scores, and in float32 at least."""
    if backend(call) != "math":
        return 0
    element_bytes = 8 if call["dtype"] == "float64" else 4
    scores = call["batch"] * call["heads"] * call["queries"] * call["keys"]
    return scores * element_bytes


def changed(call, change, wanted):
    """Give a call after one change."""
    if change == "bfloat16":
        return {**call, "dtype": "bfloat16"}
    if change == "causal":
        return {**call, "mask": "none", "is_causal": True}
    if change == "pad":
        padded = {name: -(-call[name] // 8) * 8 for name in ("head_dim", "value_dim")}
        return {**call, **padded}
    return {**call, "allowed": [wanted]}


def changes(call, wanted):
    """Try none, one, two, and so on."""
    for count in range(len(CHANGES) + 1):
        for some in itertools.combinations(CHANGES, count):
            if "causal" in some and call["mask"] != "causal":
                continue
            new = call
            for change in some:
                new = changed(new, change, wanted)
            if backend(new) == wanted:
                return list(some)
    return ["impossible"]
