"""All conditions as a table of functions."""


def halves(call):
    return call["dtype"] in ("float16", "bfloat16")


def sides(call):
    return call["head_dim"], call["value_dim"]


TABLE = {
    "cudnn": {
        "dtype": lambda call: not halves(call),
        "dims": lambda call: any(side > 256 or side % 8 for side in sides(call)),
        "deterministic": lambda call: call["deterministic"],
    },
    "flash": {
        "dtype": lambda call: not halves(call),
        "mask": lambda call: call["mask"] in ("causal", "any"),
        "dims": lambda call: len(set(sides(call))) == 2 or max(sides(call)) > 256,
        "causal": lambda call: call["is_causal"] and call["keys"] != call["queries"],
    },
    "efficient": {
        "dtype": lambda call: call["dtype"] == "float64",
        "dims": lambda call: any(
            side % (8 if halves(call) else 4) for side in sides(call)
        ),
    },
    "math": {},
}


def backend_ran(kernels):
    words = " ".join(kernels)
    marks = {"_sdpa_": "cudnn", "pytorch_flash::": "flash", "fmha_": "efficient"}
    return next((name for mark, name in marks.items() if mark in words), "math")


def reasons(call, backend):
    conditions = TABLE[backend].items()
    why = [name for name, is_given in conditions if is_given(call)]
    return why if backend in call["allowed"] else ["allowed", *why]


def backend(call):
    return next((name for name in TABLE if not reasons(call, name)), "error")


def score_bytes(call):
    count = 1
    for name in ("batch", "heads", "queries", "keys"):
        count *= call[name]
    size = {"float64": 8}.get(call["dtype"], 4)
    return count * size if backend(call) == "math" else 0


def changes(call, wanted):
    ways = {
        "bfloat16": {"dtype": "bfloat16"},
        "pad": {side: call[side] + -call[side] % 8 for side in sides_of()},
        "allow": {"allowed": [wanted]},
    }
    if call["mask"] == "causal":
        ways["causal"] = {"mask": "none", "is_causal": True}
    queue = [((), call)]
    for names, now in queue:
        if backend(now) == wanted:
            return list(names)
        queue += [
            ((*names, name), {**now, **change})
            for name, change in ways.items()
            if name not in names
        ]
    return ["impossible"]


def sides_of():
    return "head_dim", "value_dim"
