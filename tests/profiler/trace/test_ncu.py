"""Output of Nsight Compute: a table, a limiter for each kernel.

Most files are written here by the documented pages; `tests/data/ncu` has those of
Nsight Compute 2025.3.1 on an H100, `ncu --set full -c 12` of a program of five kernels.
"""

import gzip
import importlib.util
from pathlib import Path

import pytest

from warpbook.cli.main import main
from warpbook_profiler.files.nsight import ncu
from warpbook_profiler.files.nsight.limiters import (
    KernelLimit,
    heading,
    kernel_limits,
    limiter_lines,
)
from warpbook_profiler.files.nsight.ncu import read_ncu
from warpbook_profiler.model.errors import NotATrace, TraceFileError, TraceTooLarge

REAL = Path(__file__).parents[2] / "data" / "ncu"
_ABOUT = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream",'
    '"Block Size","Grid Size","Device","CC",'
)
RAW = (
    "==PROF== Connected to process 42\nmy program says hello\n"
    + _ABOUT
    + '"gpu__time_duration.sum","sm__throughput.avg.pct_of_peak_sustained_elapsed",'
    '"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",'
    '"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",'
    '"sm__warps_active.avg.pct_of_peak_sustained_active",'
    '"launch__waves_per_multiprocessor"\n'
    '"","","","","","","","","","","","us","%","%","%","%",""\n'
    '"0","42","python","host","gemm(float*, int)","1","7","(128,1,1)","(264,1,1)",'
    '"0","9.0","1,250.5","93.1","41.0","20.0","24.9","2.0"\n'
    '"1","42","python","host","add(float*)","1","7","(256,1,1)","(8192,1,1)",'
    '"0","9.0","310.0","12.5","91.4","91.4","88.0","7.75"\n'
    '"2","42","python","host","tiny(int)","1","7","(32,1,1)","(4,1,1)",'
    '"0","9.0","2.0","0.4","1.1","0.2","3.1","0.00"\n'
    '"3","42","python","host","gemm(float*, int)","1","7","(128,1,1)","(264,1,1)",'
    '"0","9.0","1,249.5","92.9","41.0","20.0","24.9","2.0"\n'
)
_SECTIONS = {
    "gemm": {"Duration": ("us", "1250"), "Compute (SM) Throughput": ("%", "93.1")}
    | {"Memory Throughput": ("%", "41.0"), "DRAM Throughput": ("%", "20.0")},
    "stall": {"Duration": ("ms", "0.5"), "Compute (SM) Throughput": ("%", "22.0")}
    | {"Memory Throughput": ("%", "35.0"), "Achieved Occupancy": ("%", "18.0")}
    | {"Waves Per SM": ("", "4")},
}
DETAILS = (
    _ABOUT
    + '"Section Name","Metric Name","Metric Unit","Metric Value"\n'
    + "".join(
        f'"{number}","1","p","h","{kernel}","1","7","(1,1,1)","(1,1,1)","0","9.0",'
        f'"S","{metric}","{unit}","{value}"\n'
        for number, (kernel, metrics) in enumerate(_SECTIONS.items())
        for metric, (unit, value) in (
            *metrics.items(),
            ("Memory Throughput", ("Gbyte/second", "700")),
            ("Registers Per Thread", ("register/thread", "32")),
        )
    )
)
TEXT = "[42] python@127.0.0.1\n" + "".join(
    f"  {kernel} (264, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 9.0\n"
    "    Section: GPU Speed Of Light Throughput\n"
    "    ----------------------- ----------- ------------\n"
    + "".join(
        f"    {metric:<24}{unit:>12}{value:>13}\n"
        for metric, (unit, value) in metrics.items()
    )
    for kernel, metrics in _SECTIONS.items()
)


def limits_of(folder: Path, text: str, name: str = "kernels.csv") -> list[KernelLimit]:
    path = folder / name
    path.write_text(text)
    return list(kernel_limits(read_ncu(str(path))))


@pytest.mark.parametrize(
    "line",
    [
        'my "Kernel Name" is',
        'x"Kernel Name",1',
        '"a ""Kernel Name""","Metric Name"',
        '"Kernel Name"x',
    ],
)
def test_a_line_that_only_looks_like_a_header_is_none(
    tmp_path: Path, line: str
) -> None:
    path = tmp_path / "k.csv"
    path.write_text(f"{line}\n{RAW}")
    assert [launch.name for launch in read_ncu(str(path))][:1] == ["gemm(float*, int)"]
    path.write_text(line)
    with pytest.raises(NotATrace):
        read_ncu(str(path))


def test_the_raw_page_gives_a_limiter_for_each_kernel(tmp_path: Path) -> None:
    gemm, add, tiny = limits_of(tmp_path, RAW)
    assert gemm.name == "gemm(float*, int)" and gemm.launches == 2
    assert gemm.time_ns == pytest.approx(2_500_000)
    assert gemm.compute == pytest.approx(0.93) and gemm.waves == 2.0
    assert gemm.limiter.startswith("compute is the limit")
    assert add.limiter.startswith("memory is the limit (most in device memory)")
    assert tiny.limiter.startswith("latency: ")
    assert "the grid does not fill the GPU" in tiny.limiter
    said = heading([gemm, add, tiny])
    assert said.startswith("3 kernels of Nsight Compute, 4 launches. The longest, 89 %")


@pytest.mark.parametrize(("text", "name"), [(DETAILS, "a.csv"), (TEXT, "a.txt")])
def test_details_and_text_say_the_same(tmp_path: Path, text: str, name: str) -> None:
    gemm, stall = limits_of(tmp_path, text, name)
    assert (gemm.name, stall.name) == ("gemm", "stall")
    assert gemm.time_ns == pytest.approx(1_250_000)
    # the share, not the bytes a second of the same name
    assert gemm.memory == pytest.approx(0.41)
    assert "too few warps to hide latency" in stall.limiter


@pytest.mark.parametrize("name", ["details.csv", "details.txt", "raw.csv"])
def test_a_real_run_reads_alike_in_all_formats(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.decompress((REAL / f"{name}.gz").read_bytes()))
    limits = kernel_limits(read_ncu(path))
    assert [one.launches for one in limits] == [2, 2, 2, 2, 1, 1]
    product, softmax, *pointwise = limits
    assert product.name.startswith("nvjet_sm90_tst_256x128")
    assert product.limiter.startswith("compute is the limit: compute at 9")
    assert "SoftMax" in softmax.name
    for kernel in pointwise[:2]:
        assert "vectorized_elementwise_kernel" in kernel.name
        assert kernel.time_ns == pytest.approx(85_300, rel=0.01)
        assert kernel.limiter.startswith("memory is ")
        assert "(most in device memory)" in kernel.limiter


def test_what_was_not_measured_is_unknown(tmp_path: Path) -> None:
    text = RAW.replace('"41.0"', '"n/a"').replace('"1,250.5"', '""')
    gemm = next(one for one in limits_of(tmp_path, text) if one.launches == 2)
    assert gemm.time_ns is None and gemm.memory is None
    assert gemm.limiter.startswith("unknown")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a,b\n1,2\n",
        '"Kernel Name","Metric Name"\n"k","Duration"\n',
        '"ID","Kernel Name","x"\n"0","k","1"\n',
        '"Kernel Name"' + "," * 100_000,
        "  k, Context 1, Stream 7\n" + "    x  " * 50_000,
        "\0" * 1000,
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(NotATrace, match="ncu"):
        limits_of(tmp_path, text)


def test_bounds_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = RAW.replace("gemm", "g" * 5_000)
    assert max(len(one.name) for one in limits_of(tmp_path, long)) <= 1000
    monkeypatch.setattr(ncu, "MAX_LAUNCHES", 2)
    with pytest.raises(TraceTooLarge):
        limits_of(tmp_path, RAW)
    monkeypatch.setattr(ncu, "MAX_BYTES", 10)
    with pytest.raises(TraceTooLarge):
        limits_of(tmp_path, RAW)


def test_a_terminal_shows_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kernels.csv"
    path.write_text(RAW.replace("add(float*)", "add\x1b[2J"))
    assert main(["analyze", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 kernels of Nsight Compute")
    assert "\x1b" not in out
    assert "91 %" in out
    assert main(["analyze", "--json", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith('{"schema":"warpbook.kernels","version":1,')
    assert '"kernels":[{"name":"gemm' in out


def test_more_kernels_than_are_told_are_counted(tmp_path: Path) -> None:
    body = RAW.splitlines()
    rows = [body[-1].replace("gemm", f"gemm{number}") for number in range(60)]
    limits = limits_of(tmp_path, "\n".join([*body[2:4], *rows]))
    assert limiter_lines(limits)[-1] == "(10 more)"


@pytest.mark.parametrize("number", ["1.250,50", "1250,5", "1 250,50", "1’250,5", "0,4"])
def test_numbers_with_a_decimal_comma_are_refused(number: str, tmp_path: Path) -> None:
    for text in (RAW.replace("1,250.5", number), DETAILS.replace("1250", number)):
        with pytest.raises(TraceFileError, match="decimal comma.*LC_ALL=C"):
            limits_of(tmp_path, text)


@pytest.mark.parametrize(
    "number", ["1250.5", "1,250.5", "1 250.5", "1\u202f250.5", "1'250.5", "1.2505e3"]
)
def test_thousands_may_be_apart(number: str, tmp_path: Path) -> None:
    gemm = limits_of(tmp_path, RAW.replace("1,250.5", number))[0]
    assert gemm.time_ns == pytest.approx(2_500_000)


def test_more_than_all_of_a_peak_is_told(tmp_path: Path) -> None:
    gemm = limits_of(tmp_path, RAW.replace("93.1", "931").replace("92.9", "929"))[0]
    assert "compute at 930 % of its peak can't be" in gemm.limiter


def test_rows_of_a_summary_are_of_many_launches(tmp_path: Path) -> None:
    about = (
        '"Process ID","Process Name","Host Name","Kernel Name","Block Size",'
        '"Grid Size","Device","CC","Invocations","Section Name","Metric Name",'
        '"Metric Unit","Minimum","Maximum","Average"\n'
    )
    rows = "".join(
        f'"42","p","h","{kernel}","(256, 1, 1)","{grid}","0","8.6","{count}","S",'
        f'"{metric}","{unit}","0.1","99.0","{mean}"\n'
        for kernel, grid, count, took, compute in (
            ("add", "(64, 1, 1)", 1000, "2.00", "8.5"),
            ("gemm", "(1024, 1, 1)", 1, "50.0", "90.0"),
            ("add", "(8192, 1, 1)", 10, "305.0", "11.0"),
        )
        for metric, unit, mean in (
            ("Duration", "usecond", took),
            ("SM [%]", "%", compute),
            ("Memory [%]", "%", "40.0"),
        )
    )
    add, gemm = limits_of(tmp_path, about + rows)
    assert (add.launches, gemm.launches) == (1010, 1)
    assert add.time_ns == pytest.approx(5_050_000)
    assert add.compute == pytest.approx((1000 * 0.085 + 10 * 0.11) / 1010)
    text = (
        "  add(float *, int) (64, 1, 1)x(256, 1, 1), Device 0, CC 8.6, "
        "Invocations 1000\n"
        "    Compute (SM) Throughput         %     8.00     9.00     8.50\n"
        "    Memory Throughput               %    20.00    22.00    21.00\n"
        "    Duration                  usecond     1.90     3.10     2.00\n"
    )
    (printed,) = limits_of(tmp_path, text, "summary.txt")
    assert printed.name == "add(float *, int)" and printed.launches == 1000
    assert printed.time_ns == pytest.approx(2_000_000)


#: as much of NVIDIA's module as is used, and what it does with another file
MODULE = """
import math, os, sys

class Metric:
    def __init__(self, unit, value): self._unit, self._value = unit, value
    def unit(self): return self._unit
    def has_value(self): return self._value is not None
    def as_double(self): return self._value

class Action:
    def name(self): return "add"
    def metric_by_name(self, name):
        return {
            "gpu__time_duration.sum": Metric("ns", 2000),
            "sm__throughput.avg.pct_of_peak_sustained_elapsed": Metric("%", 91.5),
            "dram__throughput.avg.pct_of_peak_sustained_elapsed": Metric("%", None),
            "sm__warps_active.avg.pct_of_peak_sustained_active": Metric("%", math.nan),
        }.get(name)

class Range:
    def num_actions(self): return 3
    def action_by_idx(self, at): return Action()

class Report:
    def num_ranges(self): return 2
    def range_by_idx(self, at): return Range()

def load_report(path):
    if open(path, "rb").read(3) != b"NVR":
        os.abort()
    return Report()
"""


def test_a_report_is_read_by_nvidias_module_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kernels.ncu-rep"
    path.write_bytes(b"NVR")
    if importlib.util.find_spec("ncu_report") is None:
        with pytest.raises(NotATrace, match="pip install ncu-report"):
            read_ncu(str(path))
    (tmp_path / "ncu_report.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    (add,) = kernel_limits(read_ncu(str(path)))
    assert (add.name, add.launches, add.time_ns) == ("add", 6, 12_000)
    assert add.compute == pytest.approx(0.915) and add.dram is None
    path.write_bytes(b"something that ends the library")
    with pytest.raises(NotATrace, match="can't read it"):
        read_ncu(str(path))
