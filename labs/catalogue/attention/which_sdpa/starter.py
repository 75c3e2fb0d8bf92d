"""Tell which backend of attention runs, and why. Fill in the five functions.

A call is a dict:

    {"dtype": "bfloat16", "batch": 2, "heads": 8, "queries": 1024, "keys": 1024,
     "head_dim": 64, "value_dim": 64, "mask": "none", "is_causal": False,
     "dropout": 0.0, "deterministic": False,
     "allowed": ["cudnn", "flash", "efficient", "math"]}

Backends are "cudnn", "flash", "efficient" and "math".
"""


def backend_ran(kernels):
    """Name the backend by the kernels that ran."""
    return "flash" if any("flash" in name for name in kernels) else "math"


def reasons(call, backend):
    """Give all reasons for which a backend declines a call."""
    return []


def backend(call):
    """Name the backend that runs."""
    return "flash"


def score_bytes(call):
    """Give the bytes of the scores that are written to memory."""
    return 0


def changes(call, wanted):
    """Give the fewest changes with which the wanted backend runs, if there is a way."""
    return []
