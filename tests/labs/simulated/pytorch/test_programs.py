"""What a learner's file asks for is recorded in its order, with its lines."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest

from tests.labs.simulated.learner_file import Failed, left_of, of_kind, program_of
from warpbook_labs.engines.simulated.program import (
    HOST,
    Allocate,
    BeginCapture,
    Copy,
    Launch,
    Place,
    Program,
    Read,
    RecordEvent,
    Release,
    Replay,
    Synchronize,
    UseOn,
    WaitEvent,
)

FOUR = np.arange(4, dtype=np.float32)
SQUARE = np.zeros((4, 4), np.float32)
#: the body's first line is the third
HEAD = "import torch\ndef run(state{}):\n"
Buffers = dict[str, tuple[np.ndarray[Any, Any], Place]]


def source_of(body: str, buffers: Buffers | None = None) -> str:
    head = HEAD.format("".join(f", {name}" for name in buffers or {}))
    text = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return f"{head}{text}\n\ndef prepare():\n    return None\n"


def record(body: str, buffers: Buffers | None = None) -> Program:
    return program_of(source_of(body, buffers), buffers)


def kinds(program: Program) -> list[str]:
    """The instructions by name; a launch by its operation."""
    names = [
        getattr(instruction, "operation", type(instruction).__name__)
        for instruction in program.instructions
    ]
    short = [name.split(".")[1] if "." in name else name for name in names]
    return [name.removesuffix("_") for name in short if name != "BeginCall"]


def test_work_goes_to_the_current_stream_and_events_order_streams() -> None:
    program = record(
        """
        side = torch.cuda.Stream()
        x = torch.zeros(4, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x.add_(1)
        done = side.record_event()
        done.wait()
        y = x * 2
        """
    )
    launches = of_kind(program, Launch)
    assert [(launch.operation, launch.stream) for launch in launches] == [
        ("fill", 0),
        ("aten.add_.Tensor", 1),
        ("aten.mul.Tensor", 0),
    ]
    assert [launch.call for launch in launches[1:]] == [
        '[[{"w": 0}, 1], {}]',
        '[[{"r": 0}, 2], {}]',
    ]
    assert of_kind(program, RecordEvent) == [
        RecordEvent(0, 0, line=5),
        RecordEvent(1, 1, line=8),
    ]
    assert of_kind(program, WaitEvent) == [
        WaitEvent(0, 1, line=5),
        WaitEvent(1, 0, line=9),
    ]
    assert [instruction.stream for instruction in of_kind(program, Allocate)] == [0, 0]


def test_memory_is_released_when_nobody_holds_it() -> None:
    program = record(
        """
        x = torch.empty(100, device="cuda")
        part = x[10:20]
        x = None
        y = torch.empty(5, device="cuda")
        part.record_stream(torch.cuda.Stream())
        del part
        z = (y + 1) * 2
        """
    )
    assert kinds(program)[:6] == [
        *("Allocate", "Allocate", "UseOn", "Release"),
        *("Allocate", "add"),
    ]
    assert of_kind(program, UseOn) == [UseOn(0, 1)]
    # the sum in between is gone once it is multiplied
    assert [instruction.storage for instruction in of_kind(program, Release)][:2] == [
        0,
        2,
    ]


def test_buffers_are_lent_and_written_in_place() -> None:
    buffers: Buffers = {"x": (FOUR, "pinned"), "out": (FOUR, "device")}
    program = record("out[1:3].copy_(x[:2], non_blocking=True)", buffers)
    assert kinds(program) == ["Copy"]
    (copy,) = of_kind(program, Copy)
    lent = program.buffers
    assert (copy.source.storage, copy.source.offset) == (lent["x"].storage, 0)
    assert (copy.target.storage, copy.target.offset) == (lent["out"].storage, 1)
    assert copy.is_asynchronous and copy.stream == 0


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # whole memory of one type: nothing but the copy
        ("y = x.to('cuda', non_blocking=True)", ["Allocate", "Copy"]),
        # columns are gathered in pageable memory first, whatever was asked
        (
            "y = x[:, :2].to('cuda', non_blocking=True)",
            ["Allocate", "Allocate", "copy", "Copy", "Release"],
        ),
        # the same order on both sides is as good as rows
        ("y = x.t().to('cuda', non_blocking=True)", ["Allocate", "Copy"]),
        # types are changed on the GPU where the host shall not wait
        (
            "y = x.to('cuda', torch.float16, non_blocking=True)",
            ["Allocate", "Allocate", "Copy", "copy", "Release"],
        ),
        # and on the host where it may
        (
            "y = x.to('cuda', torch.float16)",
            ["Allocate", "Allocate", "copy", "Copy", "Release"],
        ),
        ("y = x.to('cpu')", []),
        ("y = d.cuda()", []),
        ("y = d.to(torch.float64)", ["Allocate", "copy"]),
        ("x.copy_(d)", ["Copy"]),
        ("d[1].copy_(d[1])", []),
        ("d.copy_(d + 1)", ["Allocate", "add", "copy", "Release"]),
        (
            "x[:, :2].copy_(d[:, :2])",
            ["Allocate", "copy", "Allocate", "Copy", "copy", "Release", "Release"],
        ),
        # a number is a tensor of the GPU there, which a kernel makes
        (
            "y = torch.where(d > 0, d, 1.0)",
            ["Allocate", "gt", "Allocate", "fill", "Allocate", "where", "Release"],
        ),
        ("d.masked_fill_(d > 0, 1.0)", ["Allocate", "gt", "masked_fill", "Release"]),
        ("d[d > 0] = 1.0", ["Allocate", "gt"]),
        ("y = x.pin_memory()", []),
        ("y = x.clone().pin_memory()", ["Allocate", "copy", "Allocate", "copy"]),
        ("torch._foreach_copy_([d[0], d[1]], [d[2], d[3]])", ["copy"]),
        ("torch._foreach_copy_([d[0], d[1]], [x[2], x[3]])", ["Copy", "Copy"]),
    ],
)
def test_work_is_split_as_pytorch_splits_it(source: str, expected: list[str]) -> None:
    buffers: Buffers = {"x": (SQUARE, "pinned"), "d": (SQUARE, "device")}
    program = record(source, buffers)
    assert [kind for kind in kinds(program)][: len(expected)] == expected
    if not expected:
        assert kinds(program) == []
    for copy in of_kind(program, Copy):
        assert copy.source.shape == copy.target.shape
        assert copy.source.dtype == copy.target.dtype


def test_where_copies_land() -> None:
    program = record(
        """
        a = d.to("cpu", non_blocking=True)
        b = d.cpu()
        assert a.is_pinned() and not b.is_pinned()
        b.copy_(a)
        """,
        {"d": (FOUR, "device")},
    )
    assert [instruction.place for instruction in of_kind(program, Allocate)] == [
        "pinned",
        "pageable",
    ]
    assert [instruction.is_asynchronous for instruction in of_kind(program, Copy)] == [
        True,
        False,
    ]
    (launch,) = of_kind(program, Launch)
    assert (launch.operation, launch.stream) == ("copy", HOST)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("d.sum().item()", "item"),
        ("float(d[0])", "item"),
        ("bool(d[0] > 1)", "item"),
        ("d.tolist()", "tolist"),
        ("str(d)", "print"),
        ("x.numpy()", "numpy"),
        ("import numpy; numpy.asarray(x)", "numpy"),
        ("torch.equal(d, d)", "equal"),
        ("list(range(d.long()[1]))", "item"),
    ],
)
def test_python_that_looks_at_numbers_is_recorded(source: str, what: str) -> None:
    buffers: Buffers = {"d": (FOUR, "device"), "x": (FOUR, "pinned")}
    reads = of_kind(record(source, buffers), Read)
    assert {(read.what, read.line) for read in reads} == {(what, 3)}


def test_the_host_waits_where_it_is_told_to() -> None:
    program = record(
        """
        side = torch.cuda.Stream(priority=-1)
        mark = torch.cuda.Event()
        mark.record(side)
        mark.synchronize()
        side.synchronize()
        torch.cuda.synchronize()
        """
    )
    assert of_kind(program, Synchronize) == [
        Synchronize("event", 0, line=6),
        Synchronize("stream", 33, line=7),
        Synchronize("device", 0, line=8),
    ]


def test_streams_come_from_a_pool_that_goes_round() -> None:
    program = record(
        """
        streams = [torch.cuda.Stream() for _ in range(33)]
        assert streams[0] == streams[32] and len(set(streams)) == 32
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
        with streams[5]:
            assert torch.cuda.current_stream() == streams[5]
            with torch.cuda.stream(streams[6]), torch.cuda.stream(None):
                assert torch.cuda.current_stream() == streams[6]
            assert torch.cuda.current_stream() == streams[5]
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
        """
    )
    assert kinds(program) == []


def test_a_graph_computes_only_when_it_is_replayed() -> None:
    program = record(
        """
        x = torch.zeros(4, device="cuda")
        graph = torch.cuda.CUDAGraph()
        side = torch.cuda.Stream()
        with torch.cuda.graph(graph):
            y = x + 1
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                z = y * 2
            torch.cuda.current_stream().wait_stream(side)
        x.fill_(3)
        graph.replay()
        assert z.tolist() == [8, 8, 8, 8]
        """
    )
    assert of_kind(program, BeginCapture) == [BeginCapture(0, 2, line=6)]
    assert of_kind(program, Replay) == [Replay(0, 0, line=13)]


@pytest.mark.parametrize(
    "body",
    [
        "x.sum().item()",
        "torch.cuda.synchronize()",
        "torch.cuda.current_stream().synchronize()",
        "x.cpu()",
        "print(x)",
        "torch.cuda.current_stream().wait_event(before)",
    ],
)
def test_a_capture_forbids_what_makes_the_host_wait(body: str) -> None:
    with pytest.raises(Failed, match="CUDA error: "):
        record(
            f"""
            x = torch.zeros(4, device="cuda")
            before = torch.cuda.Stream().record_event()
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                {body}
            """
        )


def test_a_call_begins_on_the_default_stream_and_has_new_inputs() -> None:
    body = """
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
        assert x.tolist() == [0, 1, 2, 3]
        x.zero_()
        torch.cuda.set_stream(torch.cuda.Stream())
    """
    buffers: Buffers = {"x": (FOUR, "device")}
    program = program_of(source_of(body, buffers), buffers, calls=2)
    assert kinds(program) == ["Read", "fill"] * 2


def test_a_case_begins_with_the_usual_settings() -> None:
    body = """
        assert not torch.backends.cudnn.benchmark and torch.is_grad_enabled()
        assert torch.get_default_dtype() == torch.float32
        torch.backends.cudnn.benchmark = True
        assert torch.backends.cudnn.allow_tf32
        torch.backends.cudnn.set_flags(_allow_tf32=False)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
    """
    for _ in range(2):
        record(body)


def test_a_loop_that_does_not_end_is_ended() -> None:
    left = left_of(source_of("x = torch.zeros(4)\nwhile True:\n    x += 1"), {}, {})
    assert left.line == 5
    assert "records 100,000 things" in left.problem and "line 5" in left.problem


def test_convolutions_say_what_cudnn_was_allowed() -> None:
    program = record(
        """
        from torch.nn import functional
        torch.backends.cudnn.benchmark = True
        x = torch.ones(1, 2, 5, 5, device="cuda").half()
        x = x.to(memory_format=torch.channels_last)
        w = torch.ones(3, 2, 3, 3, device="cuda").half()
        y = functional.conv2d(x, w, padding=1)
        assert y.is_contiguous(memory_format=torch.channels_last)
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.allow_tf32 = False
        torch.nn.grad.conv2d_weight(x, (3, 2, 3, 3), y, padding=1)
        """
    )
    launches = [
        instruction
        for instruction in of_kind(program, Launch)
        if "conv" in instruction.operation
    ]
    assert [(launch.operation, launch.numbers) for launch in launches] == [
        ("conv2d", (1, 1, 1, 0, 1)),
        ("conv2d_weight", (1, 1, 1, 1, 0)),
    ]


def test_a_program_has_no_lines_of_what_the_learner_calls() -> None:
    program = record("y = torch.nn.Linear(2, 2).cuda()(torch.ones(2).cuda())")
    assert {instruction.line for instruction in of_kind(program, Launch)} == {3}
