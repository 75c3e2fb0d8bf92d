"""What a learner's file asks for is recorded in its order, with its lines."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.labs.simulated.recording.running import FOUR, kinds, of_kind, record
from warpbook_labs.simulated.program import (
    HOST,
    Allocate,
    BeginCapture,
    Copy,
    Launch,
    Program,
    Read,
    RecordEvent,
    Release,
    Replay,
    Synchronize,
    UseOn,
    WaitEvent,
)
from warpbook_labs.simulated.recording.recorder import TooMuch
from warpbook_labs.simulated.recording.refusing import Missing
from warpbook_labs.simulated.recording.session import Session


def test_work_goes_to_the_current_stream_and_events_order_streams() -> None:
    program = record(
        """
        import torch
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
    assert [(one.operation, one.stream) for one in of_kind(program, Launch)] == [
        ("fill", 0),
        ("add", 1),
        ("mul", 0),
    ]
    assert of_kind(program, RecordEvent) == [
        RecordEvent(0, 0, line=4),
        RecordEvent(1, 1, line=7),
    ]
    assert of_kind(program, WaitEvent) == [
        WaitEvent(0, 1, line=4),
        WaitEvent(1, 0, line=8),
    ]
    assert [one.stream for one in of_kind(program, Allocate)] == [0, 0]


def test_memory_is_released_when_nobody_holds_it() -> None:
    program = record(
        """
        import torch
        x = torch.empty(100, device="cuda")
        part = x[10:20]
        x = None
        y = torch.empty(5, device="cuda")
        part.record_stream(torch.cuda.Stream())
        del part
        z = (y + 1) * 2
        print(torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())
        """
    )
    assert kinds(program)[:6] == [
        *("Allocate", "Allocate", "UseOn", "Release"),
        *("Allocate", "add"),
    ]
    assert of_kind(program, UseOn) == [UseOn(0, 1)]
    # the sum in between is gone once it is multiplied
    assert [one.storage for one in of_kind(program, Release)] == [0, 2, 1, 3]


def test_buffers_are_lent_and_written_in_place() -> None:
    program = record(
        "out[1:3].copy_(x[:2], non_blocking=True)",
        {"x": (FOUR, "pinned"), "out": (np.zeros((4,), np.float32), "device")},
    )
    assert kinds(program) == ["Copy"]
    (copy,) = of_kind(program, Copy)
    assert (copy.source.storage, copy.source.offset) == (
        program.buffers["x"].storage,
        0,
    )
    assert (copy.target.storage, copy.target.offset) == (
        program.buffers["out"].storage,
        1,
    )
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
        ("d.copy_(d + 1)", ["Allocate", "add", "copy", "Release"]),
        (
            "x[:, :2].copy_(d[:, :2])",
            ["Allocate", "copy", "Allocate", "Copy", "copy", "Release", "Release"],
        ),
        # a number is a tensor of the GPU there, which a kernel makes
        (
            "y = torch.where(d > 0, d, 1.0)",
            ["Allocate", "gt", "Allocate", "fill", "Release", "Allocate", "where"],
        ),
        ("d.masked_fill_(d > 0, 1.0)", ["Allocate", "gt", "where", "Release"]),
        ("y = x.pin_memory()", []),
        ("y = x.clone().pin_memory()", ["Allocate", "copy", "Allocate", "copy"]),
    ],
)
def test_work_is_split_as_pytorch_splits_it(source: str, expected: list[str]) -> None:
    square = np.zeros((4, 4), np.float32)
    program = record(
        f"import torch\n{source}", {"x": (square, "pinned"), "d": (square, "device")}
    )
    found = [kind for kind in kinds(program)]
    while found and found[-1] == "Release" and found != expected:
        found.pop()
    assert found == expected
    for copy in of_kind(program, Copy):
        assert copy.source.shape == copy.target.shape
        assert copy.source.dtype == copy.target.dtype


def test_where_copies_land() -> None:
    program = record(
        """
        import torch
        a = d.to("cpu", non_blocking=True)
        b = d.cpu()
        assert a.is_pinned() and not b.is_pinned()
        b.copy_(a)
        """,
        {"d": (FOUR, "device")},
    )
    assert [one.place for one in of_kind(program, Allocate)] == ["pinned", "pageable"]
    assert [one.is_asynchronous for one in of_kind(program, Copy)] == [True, False]
    (launch,) = of_kind(program, Launch)
    assert (launch.operation, launch.stream) == ("copy", HOST)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("d.sum().item()", "item"),
        ("float(d[0])", "float"),
        ("int(d[1])", "int"),
        ("bool(d[0] > 1)", "bool"),
        ("d.tolist()", "tolist"),
        ("str(d)", "print"),
        ("f'{d[0]}'", "print"),
        ("x.numpy()", "numpy"),
        ("max(d[0], d[1])", "bool"),
        ("torch.equal(d, d)", "bool"),
    ],
)
def test_python_that_looks_at_numbers_is_recorded(source: str, what: str) -> None:
    program = record(
        f"import torch\n{source}", {"d": (FOUR, "device"), "x": (FOUR, "pinned")}
    )
    (read,) = of_kind(program, Read)
    assert (read.what, read.line) == (what, 2)


def test_the_host_waits_where_it_is_told_to() -> None:
    program = record(
        """
        import torch
        side = torch.cuda.Stream(priority=-1)
        mark = torch.cuda.Event()
        mark.record(side)
        mark.synchronize()
        side.synchronize()
        torch.cuda.synchronize()
        """
    )
    assert of_kind(program, Synchronize) == [
        Synchronize("event", 0, line=5),
        Synchronize("stream", 33, line=6),
        Synchronize("device", 0, line=7),
    ]


def test_streams_come_from_a_pool_that_goes_round() -> None:
    program = record(
        """
        import torch
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
    assert program.instructions == ()


def test_a_graph_computes_only_when_it_is_replayed() -> None:
    program = record(
        """
        import torch
        x = torch.zeros(4, device="cuda")
        graph = torch.cuda.CUDAGraph()
        side = torch.cuda.Stream()
        with torch.cuda.graph(graph):
            y = x + 1
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                z = y * 2
            torch.cuda.current_stream().wait_stream(side)
        assert z.tolist() == [0, 0, 0, 0]
        x.fill_(3)
        graph.replay()
        assert z.tolist() == [8, 8, 8, 8]
        """
    )
    assert kinds(program)[2:5] == ["Synchronize", "BeginCapture", "Allocate"]
    assert of_kind(program, BeginCapture) == [BeginCapture(0, 2, line=5)]
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
    with pytest.raises(RuntimeError, match=r"^CUDA error: .*\Z"):
        record(
            f"""
            import torch
            x = torch.zeros(4, device="cuda")
            before = torch.cuda.Stream().record_event()
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                {body}
            """
        )


def test_lines_are_those_of_the_learner_and_not_of_what_they_call() -> None:
    session = Session({})
    torch = session.modules()["torch"]
    helper: dict[str, object] = {"torch": torch}
    exec(compile("def make():\n    return torch.zeros(3)", "given.py", "exec"), helper)
    learner = {"make": helper["make"]}
    exec(compile("\n\n\nx = make()", "solution.py", "exec"), learner)
    assert [one.line for one in of_kind(session.program(), Launch)] == [4]


def test_calls_are_marked_and_have_new_inputs() -> None:
    session = Session({"x": (FOUR, "host")})
    for number in range(2):
        session.begin_call(number, {"x": FOUR + number})
        assert session.tensors["x"].tolist() == (FOUR + number).tolist()
    assert kinds(session.program()) == ["BeginCall", "Read"] * 2


def test_a_call_begins_on_the_default_stream() -> None:
    session = Session({})
    torch = session.modules()["torch"]
    torch.cuda.set_stream(torch.cuda.Stream())
    session.begin_call(0)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_a_loop_that_does_not_end_is_ended() -> None:
    with pytest.raises(TooMuch, match="records 50 things .* line 4 asks for more"):
        record(
            """
            import torch
            x = torch.zeros(4)
            while True:
                x += 1
            """,
            most_instructions=50,
        )


def test_tensors_of_one_case_are_refused_in_the_next() -> None:
    first = Session({})
    kept = first.modules()["torch"].zeros(3)
    torch = Session({}).modules()["torch"]
    for use in (lambda: kept + 1, kept.tolist, lambda: torch.zeros(3).copy_(kept)):
        with pytest.raises(RuntimeError, match="another case"):
            use()


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("torch.linalg.svd(1)", "torch.linalg"),
        ("torch.bfloat16", "torch.bfloat16"),
        ("torch.zeros(3).scatter_(0)", "torch.Tensor.scatter_"),
        ("torch.nn.Linear(3, 3)", "torch.nn.Linear"),
        ("torch.cuda.ExternalStream(1)", "torch.cuda.ExternalStream"),
        ("torch.zeros(3, requires_grad=True)", "gradients"),
        ("torch.backends.mkl.is_available()", "torch.backends.mkl"),
    ],
)
def test_what_is_missing_is_said_with_its_line(source: str, name: str) -> None:
    with pytest.raises(Missing, match=rf"The simulated GPU has no {name}.*\(line 2\)"):
        record(f"import torch\n{source}")


def test_times_are_not_made_up() -> None:
    with pytest.raises(RuntimeError, match="not known without a GPU"):
        record(
            """
            import torch
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event()
            a.elapsed_time(b)
            """
        )


def test_pytorch_is_imported_in_all_ways() -> None:
    program = record(
        """
        import torch
        import torch.nn.functional as F
        import torch.backends.cudnn as cudnn
        from torch import nn, Tensor, float16
        from torch.cuda import Stream, nvtx
        from torch.nn.functional import relu

        assert torch.nn.functional.relu is F.relu is relu is nn.functional.relu
        assert not cudnn.benchmark
        cudnn.benchmark = True
        assert torch.backends.cudnn.benchmark
        with cudnn.flags(deterministic=True):
            assert cudnn.deterministic and not cudnn.benchmark
        assert cudnn.benchmark and not cudnn.deterministic

        @torch.no_grad()
        def run(x: Tensor) -> Tensor:
            with torch.inference_mode(), nvtx.range("step"):
                return relu(x)

        run(torch.ones(3, dtype=float16, device="cuda"))
        """
    )
    assert kinds(program)[1:4:2] == ["fill", "relu"]


def test_a_program_travels_as_data() -> None:
    program = record(
        """
        import torch
        x = torch.rand(3, 4, device="cuda") + torch.tensor([1, 2, 3, 4]).cuda()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
            torch.cuda._sleep(1000)
        graph.replay()
        """
    )
    text = msgspec.msgpack.encode(program)
    assert msgspec.msgpack.decode(text, type=Program) == program


def test_convolutions_say_what_cudnn_was_allowed() -> None:
    program = record(
        """
        import torch
        from torch.nn import functional
        torch.backends.cudnn.benchmark = True
        x = torch.ones(1, 2, 5, 5, device="cuda").half()
        x = x.to(memory_format=torch.channels_last)
        w = torch.ones(3, 2, 3, 3, device="cuda").half()
        y = functional.conv2d(x, w, padding=1)
        assert y.is_contiguous(memory_format=torch.channels_last)
        torch.use_deterministic_algorithms(True)
        torch.nn.grad.conv2d_weight(x, (3, 2, 3, 3), y, padding=1)
        """
    )
    launches = [one for one in of_kind(program, Launch) if "conv" in one.operation]
    assert [(one.operation, one.numbers) for one in launches] == [
        ("conv2d", (1, 1, 1, 0, 1)),
        ("conv2d_weight", (1, 1, 1, 1, 1)),
    ]
