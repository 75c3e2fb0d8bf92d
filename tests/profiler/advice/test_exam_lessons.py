"""What an exam on GPUs showed of rules and verdicts, each on a short program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiler.advice.program import Cell, changes_of
from tests.profiler.advice.programs import Written
from warpbook_monitors.verdict_kinds import Kind
from warpbook_profiler.facts.kernels import uses_tensor_cores
from warpbook_profiler.model.figures import Finding
from warpbook_profiler.techniques.host.growing_cat import growing_cat
from warpbook_profiler.techniques.host.masks import masks
from warpbook_profiler.techniques.host.pinning import pinning
from warpbook_profiler.verdict.findings import judge
from warpbook_profiler.verdict.metrics import Metrics

_ROWS, _WIDTH = 16_384, 4_096
_FULL, _ROW = [_ROWS, _WIDTH], [_ROWS, 1]


def passes(*operators: tuple[str, float, list[int]]) -> Written:
    """Call operators that pass over tensors of float, µs and sizes given."""
    program = Written()
    for name, time_us, dims in operators:
        program.does(
            f"aten::{name}",
            f"void at::native::{name}_kernel",
            time_us,
            args={"Input Dims": [dims], "Input type": ["float"]},
        )
    return program


def test_numbers_of_each_row_are_a_part_of_their_chain() -> None:
    """RMSNorm by hand: one kernel does the mean, the root and the products."""
    change = passes(
        ("pow", 176.0, _FULL),
        ("mean", 101.0, _FULL),
        ("add", 9.0, _ROW),
        ("rsqrt", 9.0, _ROW),
        ("mul", 226.0, _FULL),
        ("mul", 224.0, _FULL),
    ).changes()["fuse"]
    assert change.basis == "predicted"
    assert change.evidence.startswith("6 kernels")
    # an H200 reads and writes 0.54 GB in 0.13 ms
    assert change.time_ns is not None and change.time_ns < 300_000


def test_a_small_end_is_no_part_of_a_chain() -> None:
    change = passes(
        ("mul", 226.0, _FULL), ("add", 224.0, _FULL), ("sum", 9.0, _ROW)
    ).changes()["fuse"]
    assert change.evidence.startswith("2 kernels")


def test_layers_after_one_another_are_no_chain() -> None:
    layers = [("native_layer_norm", 265.0, _FULL)] * 5
    assert "fuse" not in passes(*layers).changes()


def test_random_numbers_have_a_bound_only() -> None:
    change = passes(
        ("add", 175.0, _FULL), ("native_dropout", 135.0, _FULL), ("mul", 176.0, _FULL)
    ).changes()["fuse"]
    assert (change.basis, change.time_ns) == ("not below", None)
    assert "random" in change.reason


def convolves(dtype: str) -> Written:
    program = Written()
    program.does(
        "aten::_conv_depthwise2d",
        "void at::native::conv_depthwise2d_forward_kernel_generic",
        1_800.0,
        args={
            "Input Dims": [[64, 256, 56, 56], [256, 1, 7, 7]],
            "Input type": [dtype, dtype],
        },
    )
    return program


def test_convolutions_of_each_channel_want_channels_last() -> None:
    change = convolves("c10::Half").changes()["channels-last"]
    assert (change.basis, change.operator) == ("not below", "aten::_conv_depthwise2d")
    assert "channels-last" not in convolves("float").changes()


def test_convolutions_by_fourier_transforms_use_no_tensor_cores() -> None:
    for name in (
        "void pointwise_mult_and_sum_complex<float2, 8, 4>(float2*, float2*, int)",
        "void fft2d_r2c_64x64<float>(float2*, float const*, int)",
        "void flip_filter<float, float>(float*, float const*, int)",
    ):
        assert uses_tensor_cores(name) is False


PINS = 'for b in batches:\n    y = b.pin_memory().to("cuda", non_blocking=True)\n'


def pins(source: str | None) -> Cell:
    cell = Cell(source)
    for _ in range(8):
        with cell.operator("aten::pin_memory"), cell.operator("aten::copy_"):
            cell.python(300_000)
        with cell.operator("aten::to"):
            cell.copy("HtoD", 4_000_000, "Pinned")
    cell.wait()
    return cell


def test_copies_to_pinned_memory_in_a_loop(tmp_path: Path) -> None:
    change = changes_of(pinning, pins(PINS).evidence(tmp_path))["pin-once"]
    assert (change.basis, change.line) == ("not below", 2)
    assert "8 times" in change.evidence
    # eight copies of 4 MB over the link
    assert change.low_ns is not None and 300_000 < change.low_ns < 800_000
    assert not changes_of(pinning, pins(None).evidence(tmp_path))


@pytest.mark.parametrize(
    "source",
    [
        # which batches it has is not known, or not what is pinned
        f"batches = DataLoader(images)\n{PINS}",
        "for at in order:\n    y = b[at].pin_memory()",
    ],
)
def test_batches_are_not_pinned_before_where_it_is_not_sure(
    tmp_path: Path, source: str
) -> None:
    change = changes_of(pinning, pins(source).evidence(tmp_path))["pin-once"]
    assert not change.code


def chooses(source: str) -> Cell:
    cell = Cell(source)
    for _ in range(20):
        cell.call("aten::gt", 4_000)
        with cell.operator("aten::nonzero"):
            cell.kernel(4_000)
            cell.copy("DtoH", 8)
        cell.call("aten::index_put_", 4_000)
    cell.wait()
    return cell


@pytest.mark.parametrize(
    "chosen",
    [
        "torch.nonzero(x > 2.0).squeeze(1)",
        "(x > 2.0).nonzero()[:, 0]",
        "torch.where(x > 2.0)[0]",
    ],
)
def test_indices_of_a_mask_of_ones_own(tmp_path: Path, chosen: str) -> None:
    source = f"for x in xs:\n    at = {chosen}\n    x[at] = 2.5\n"
    change = changes_of(masks, chooses(source).evidence(tmp_path))["keep-mask"]
    assert (change.basis, change.line) == ("not below", 3)


def test_a_mask_of_each_turn_is_one_by_any_name(tmp_path: Path) -> None:
    source = "for p, t, m in zip(ps, ts, ms):\n    losses.append((p[m] - t[m]).sum())\n"
    cell = Cell(source)
    for _ in range(20):
        with cell.operator("aten::index"), cell.operator("aten::nonzero"):
            cell.kernel(4_000)
            cell.copy("DtoH", 8)
    cell.wait()
    change = changes_of(masks, cell.evidence(tmp_path))["keep-mask"]
    assert change.line == 2


def test_indices_that_are_used_otherwise_are_let_be(tmp_path: Path) -> None:
    source = "for x in xs:\n    at = torch.nonzero(x)\n    found.append(at)\n"
    assert not changes_of(masks, chooses(source).evidence(tmp_path))


def test_a_growth_whose_sizes_are_not_told_shows_in_its_source(tmp_path: Path) -> None:
    source = "for part in parts:\n    y = torch.cat([y, part])\n"

    def joins(times_ns: list[int]) -> Cell:
        cell = Cell(source)
        for took in times_ns:
            cell.call("aten::cat", took)
        cell.wait()
        return cell

    growing = joins([10_000 * (number + 1) for number in range(40)])
    change = changes_of(growing_cat, growing.evidence(tmp_path))["cat-once"]
    assert (change.basis, change.line) == ("not below", 2)
    assert "a result that grows: each call" in change.evidence
    # a large one grows by little
    assert changes_of(growing_cat, joins([100_000] * 40).evidence(tmp_path))


def finding(kind: Kind, share: float, of_ns: int) -> Finding:
    return Finding(kind, round(share * of_ns), share, f"{kind}!", "Do.", None, None)


@pytest.mark.parametrize(
    ("shares", "kind"),
    [
        # causes of the host that are close: the first of sync, launch, other
        ({"launch-bound": 0.47, "sync-bound": 0.46}, "sync-bound"),
        ({"host-bound": 0.45, "launch-bound": 0.44}, "launch-bound"),
        ({"host-bound": 0.35, "launch-bound": 0.2, "memory-bound": 0.3}, "host-bound"),
        # what nobody knows names nothing, and what the GPU does may be as large
        ({"launch-bound": 0.44, "unknown": 0.39}, "launch-bound"),
        ({"memory-bound": 0.45, "host-bound": 0.42}, "mixed"),
        ({"launch-bound": 0.2, "sync-bound": 0.15}, "mixed"),
    ],
)
def test_close_causes_of_the_host_are_one_verdict(
    shares: dict[Kind, float], kind: str, busy_metrics: Metrics
) -> None:
    of_ns = busy_metrics.window_ns - busy_metrics.idle.profiler_ns
    findings = tuple(finding(name, share, of_ns) for name, share in shares.items())
    verdict = judge(busy_metrics, findings)
    assert verdict.kind == kind
    if kind != "mixed":
        assert f"{kind}!" in verdict.sentence


@pytest.fixture
def busy_metrics(tmp_path: Path) -> Metrics:
    cell = Cell()
    cell.call("aten::mul", 10_000)
    cell.python(90_000)
    cell.wait()
    return cell.evidence(tmp_path).metrics


def test_a_bound_knows_of_no_stall(tmp_path: Path) -> None:
    """What was late without a cause need not be late again."""
    source = "for part in parts:\n    y = torch.cat([y, part])\n"
    cell = Cell(source)
    for number in range(40):
        cell.call("aten::cat", 10_000 * (number + 1))
    # the last kernel begins 3 ms later than anything explains
    late = next(event for event in reversed(cell.events) if event["cat"] == "kernel")
    late["ts"] += 3_000.0
    cell._free += 3_000_000
    cell.wait()
    change = changes_of(growing_cat, cell.evidence(tmp_path))["cat-once"]
    assert change.low_ns is not None and change.low_ns < 1_000_000
