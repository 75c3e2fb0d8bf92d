# Backends are generators of objections, and the first objection decides what runs


def cudnn(call):
    """Object to what cuDNN's kernels do not have."""
    if call["dtype"] not in ("bfloat16", "float16"):
        yield "dtype"
    largest = max(call["head_dim"], call["value_dim"])
    if largest > 256 or call["head_dim"] % 8 or call["value_dim"] % 8:
        yield "dims"
    if call["deterministic"]:
        yield "deterministic"


def flash(call):
    """Object to what FlashAttention does not have."""
    if call["dtype"] not in ("bfloat16", "float16"):
        yield "dtype"
    if call["mask"] != "none":
        yield "mask"
    if call["head_dim"] != call["value_dim"] or call["head_dim"] > 256:
        yield "dims"
    if call["is_causal"] and call["keys"] != call["queries"]:
        yield "causal"


def efficient(call):
    """Object to what can't be loaded by 16 bytes."""
    element_bytes = {"float64": 8, "float32": 4}.get(call["dtype"], 2)
    if element_bytes == 8:
        yield "dtype"
    aligned = 16 // min(element_bytes, 4)
    if call["head_dim"] % aligned or call["value_dim"] % aligned:
        yield "dims"


def math(call):
    """Object to nothing."""
    yield from ()


IN_ORDER = {"cudnn": cudnn, "flash": flash, "efficient": efficient, "math": math}


def objections(call, name):
    """Give what stands against a backend, with leave to run as one more."""
    if name not in call["allowed"]:
        yield "allowed"
    yield from IN_ORDER[name](call)


def backend_ran(kernels):
    """Strip what comes before the function's own name."""
    for kernel in kernels:
        name = kernel.removeprefix("void ").split("<")[0].split("(")[0]
        if name.startswith("pytorch_flash::"):
            return "flash"
        if name.startswith("cudnn_generated") and "_sdpa_" in name:
            return "cudnn"
        if name.startswith("fmha_"):
            return "efficient"
    return "math"


def reasons(call, backend):
    """Give all of them."""
    return list(objections(call, backend))


def backend(call):
    """Look for the first without any."""
    for name in IN_ORDER:
        if next(objections(call, name), None) is None:
            return name
    return "error"


def score_bytes(call):
    """Count scores of four bytes, or eight."""
    if backend(call) != "math":
        return 0
    per_row = call["keys"] * max(4, 8 * (call["dtype"] == "float64"))
    return call["batch"] * call["heads"] * call["queries"] * per_row


def changes(call, wanted):
    """Count through the subsets as binary numbers, those with few ones first."""
    steps = {
        "bfloat16": lambda old: {"dtype": "bfloat16"},
        "causal": lambda old: {"mask": "none", "is_causal": True},
        "pad": lambda old: {
            side: 8 * ((old[side] + 7) // 8) for side in ("head_dim", "value_dim")
        },
        "allow": lambda old: {"allowed": [wanted]},
    }
    if call["mask"] != "causal":
        del steps["causal"]
    names = list(steps)
    for number in sorted(range(1 << len(names)), key=lambda bits: bin(bits).count("1")):
        some = [name for place, name in enumerate(names) if number >> place & 1]
        new = dict(call)
        for name in some:
            new.update(steps[name](new))
        if backend(new) == wanted:
            return some
    return ["impossible"]
