"""Read reports of profiled cells. Fill in the five functions.

A report has these, times in ns (and more, as `warpbook analyze --json` gives them):

    {"kernels": [{"name": "nvjet_...", "calls": 12, "time_ns": 3100000, ...}, ...],
     "metrics": {
         "window_ns": 5000000, "gpu_busy_ns": ..., "launches": 120,
         "copy_ns": ..., "exposed_copy_ns": ..., "exposed_host_copy_ns": ...,
         "communication_ns": ..., "exposed_communication_ns": ...,
         "idle": {"profiler_ns": ..., "kernel_wait_ns": ...,
                  "host_synchronize_ns": ..., "host_launching_ns": ...,
                  "host_operator_ns": ..., "host_api_ns": ..., "host_python_ns": ...},
         "sync_points": [{"name": "cudaStreamSynchronize", "operator": "aten::item",
                          "line": 7, "calls": 40, "time_ns": ..., "stall_ns": ...}],
         "idle_places": [{"cause": "launching" or "other", "operator": ...,
                          "line": 5, "time_ns": ...}],
         "copies": [{"direction": "HtoD", "host_memory": "pinned", "calls": 9,
                     "time_ns": ..., "size_bytes": ..., "gb_per_s": ...}],
         "kernel_work": [{"bound": "memory", "time_ns": ..., "kernels": 30,
                          "of_ceiling": 0.6 or None, "of_measured": 0.7 or None}]}}

The bounds of `kernel_work` are "memory", "tensor cores", "FP32 cores", "FP64 units",
"too small" and "unknown" in these reports. Where `of_ceiling` and `of_measured` are
both None, nobody knows of a gain; only kernels that are "too small" could go wholly.
"""


def busy_ns(pieces):
    """Measure when anything was on the GPU."""
    return sum(piece["end_ns"] - piece["start_ns"] for piece in pieces)


def exposed_copy_ns(pieces):
    """Measure when copies were, and no kernel."""
    return 0


def bottleneck(report):
    """Name what held the cell back most."""
    longest = report["kernels"][:1]
    return "compute-bound" if "gemm" in str(longest) else "memory-bound"


def line(report):
    """Give the line at which the GPU waited most."""
    return report["metrics"]["sync_points"][0]["line"]


def at_best_ns(report):
    """Predict the window without its largest cause."""
    return 0.0
