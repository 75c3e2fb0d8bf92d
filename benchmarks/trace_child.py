"""One reading of a trace file by one contender, in its own Python; prints JSON.

    python benchmarks/trace_child.py {warpbook,json_load,hta,tb} TRACE

`seconds` is from the file to the finished report or tables, without imports.
"""
# each contender is in an environment of its own, so only one can be imported

import contextlib
import json
import logging
import os
import resource
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


def json_load(path):
    """What reading the file takes at least in plain Python."""

    def work():
        with open(path) as file:
            json.load(file)

    return work


def hta(path):
    """HolisticTraceAnalysis: its loading and its analyses of one rank, no charts."""
    from hta.trace_analysis import TraceAnalysis

    logging.disable(logging.CRITICAL)

    def work():
        analysis = TraceAnalysis(trace_files={0: path}, trace_dir="/")
        analysis.get_temporal_breakdown(visualize=False)
        analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
        analysis.get_comm_comp_overlap(visualize=False)
        analysis.get_gpu_kernel_breakdown(visualize=False)
        analysis.get_cuda_kernel_launch_stats(ranks=[0], visualize=False)
        analysis.get_queue_length_summary(ranks=[0])
        analysis.get_memory_bw_summary(ranks=[0])

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
    """Highest resident memory; getrusage's would begin with the parent's.

    Each process that was started is taken to have needed the most of any of them.
    """
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return (int(line.split()[1]) + _started * children) / 1024


_started = 0


def _count_processes():
    def count(event, _arguments):
        global _started
        _started += event in ("subprocess.Popen", "os.fork")

    sys.addaudithook(count)


def _cpu_seconds():
    """Of this process and of those that it started and has awaited."""
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + others.ru_utime + others.ru_stime


def main():
    """Import, work, tell."""
    warnings.simplefilter("ignore")
    work = globals()[sys.argv[1]](sys.argv[2])
    _count_processes()
    begun, begun_cpu = time.perf_counter(), _cpu_seconds()
    work()
    seconds = time.perf_counter() - begun
    cpu_seconds = _cpu_seconds() - begun_cpu
    figures = {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_mib": _peak_mib()}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
