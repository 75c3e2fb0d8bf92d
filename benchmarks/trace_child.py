"""One reading of a trace file by one contender, in its own Python; prints JSON.

    python benchmarks/trace_child.py {warpbook,hta,tb} TRACE

`seconds` is from the file to the finished report or tables, without imports.
"""
# each contender is in an environment of its own, so only one can be imported
# ruff: noqa: PLC0415

import contextlib
import json
import logging
import os
import sys
import time
import warnings


def warpbook(path):
    """`warpbook analyze`, text included."""
    # as the command does before it imports the rest
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import warpbook.cli.analyze
    from warpbook.cli.main import main

    assert warpbook.cli.analyze

    def work():
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            assert main(["analyze", path]) == 0

    return work


def hta(path):
    """HolisticTraceAnalysis: its loading and its analyses of one rank, no charts."""
    from hta.trace_analysis import TraceAnalysis

    logging.disable(logging.CRITICAL)

    def work():
        found = TraceAnalysis(trace_files={0: path}, trace_dir="/")
        found.get_temporal_breakdown(visualize=False)
        found.get_idle_time_breakdown(ranks=[0], visualize=False)
        found.get_comm_comp_overlap(visualize=False)
        found.get_gpu_kernel_breakdown(visualize=False)
        found.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)
        found.get_queue_length_summary(ranks=[0])
        found.get_memory_bw_summary(ranks=[0])

    return work


def tb(path):
    """torch-tb-profiler: what its TensorBoard plugin computes before it shows."""
    from torch_tb_profiler.io.cache import Cache
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator

    logging.disable(logging.CRITICAL)

    def work():
        data = RunProfileData.parse("worker0", None, path, Cache())
        data.process()
        data.analyze()
        RunGenerator("worker0", None, data).generate_run_profile()

    return work


def _peak_mib():
    """Highest resident memory; getrusage's would begin with the parent's."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main():
    """Import, work, tell."""
    warnings.simplefilter("ignore")
    work = globals()[sys.argv[1]](sys.argv[2])
    begun, begun_cpu = time.perf_counter(), time.process_time()
    work()
    seconds = time.perf_counter() - begun
    cpu_seconds = time.process_time() - begun_cpu
    told = {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mib": _peak_mib()}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
