"""Names, options and settings are taken as PyTorch takes them, or refused in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.labs.simulated.recording.pair import Body, assert_same, simulated
from tests.labs.simulated.recording.running import FOUR, kinds, of_kind, record
from warpbook_labs.simulated.program import Allocate, Copy, Launch
from warpbook_labs.simulated.recording.refusing import Missing

X = np.arange(12, dtype=np.float32).reshape(3, 4)

SPELLED: dict[str, Body] = {
    "empty": lambda t, x: t.empty(size=(2, 3)).zero_(),
    "zeros": lambda t, x: t.zeros(size=(2,)),
    "ones": lambda t, x: t.ones(size=(2,), layout=t.strided),
    "new_ones": lambda t, x: x.new_ones(size=(2, 3)),
    "view": lambda t, x: x.view(size=(4, 3)),
    "view, type": lambda t, x: x.view(dtype=t.int32),
    "reshape": lambda t, x: t.reshape(x, shape=(4, 3)),
    "permute": lambda t, x: x.permute(dims=(1, 0)),
    "flip": lambda t, x: t.flip(x, dims=(1,)),
    "expand": lambda t, x: x[:1].expand(size=(3, 4)),
    "broadcast_to": lambda t, x: t.broadcast_to(x[0], size=(3, 4)),
    "repeat": lambda t, x: x.repeat(repeats=(2, 1)),
    "copy_": lambda t, x: t.empty(3, 4).copy_(other=x),
    "x.split": lambda t, x: x.split(split_size=2)[1],
    "split": lambda t, x: t.split(x, split_size_or_sections=2)[1],
    "split_with_sizes": lambda t, x: x.split_with_sizes(split_sizes=[1, 3], dim=1)[1],
    "split_with_sizes, wrong": lambda t, x: t.split_with_sizes(x, [1, 1]),
    "sum": lambda t, x: x.sum(axis=0, keepdims=True),
    "max": lambda t, x: t.max(x, axis=0)[1],
    "argmax": lambda t, x: t.argmax(x, axis=1, keepdims=True),
    "std": lambda t, x: t.std(x, axis=0),
    "cat": lambda t, x: t.cat([x, x], axis=1),
    "stack": lambda t, x: t.stack([x, x], axis=-1),
    "softmax": lambda t, x: t.softmax(x, axis=0),
    "unsqueeze": lambda t, x: x.unsqueeze(axis=0),
    "chunk": lambda t, x: x.chunk(2, axis=1)[1],
    "cumsum": lambda t, x: x.cumsum(axis=0),
    "vector_norm": lambda t, x: t.linalg.vector_norm(x, axis=0, keepdims=True),
    "squeeze": lambda t, x: x[:1, None].squeeze((0, 1, 2)),
    "squeeze, twice": lambda t, x: x.squeeze((0, 0)),
    "tensor_split": lambda t, x: t.tensor_split(x, 3, 1)[0],
    "tensor_split, few": lambda t, x: t.tensor_split(x, 5)[4],
    "tensor_split, places": lambda t, x: x.tensor_split((1, 3), dim=1)[1],
    "tensor_split, named": lambda t, x: t.tensor_split(x, indices=[2, -1])[1],
    "tensor_split, back": lambda t, x: t.tensor_split(x, [3, 1], dim=1)[1],
    "tensor_split, 0": lambda t, x: t.tensor_split(x, 0),
    "tensor_split, number": lambda t, x: t.tensor_split(x[0, 0], 1),
    "concatenate": lambda t, x: t.concatenate((x, x)),
    "zeros, out": lambda t, x: (t.zeros(3, 4, out=x), x)[1],
    "zeros, out, type": lambda t, x: t.zeros(3, 4, out=x, dtype=t.int32),
    "full, out": lambda t, x: t.full((3, 4), 2, out=x),
    "full, out, type": lambda t, x: t.full((3, 4), 2, out=x, dtype=t.int64),
    "arange, out": lambda t, x: t.arange(3, out=t.empty(3)),
    "linspace, out": lambda t, x: t.linspace(0, 1, 3, out=t.empty(3).double()),
    "eye, out": lambda t, x: t.eye(2, out=t.empty(2, 2)),
    "mv, out": lambda t, x: t.mv(x, x[0], out=t.empty(3)),
    "dot, out": lambda t, x: t.dot(x[0], x[1], out=t.empty(())),
    "outer, out": lambda t, x: t.outer(x[0], x[1], out=t.empty(4, 4)),
    "baddbmm, out": lambda t, x: t.baddbmm(
        x[None, :, :3], x[None], x.t()[None], out=t.empty(1, 3, 3)
    ),
    "baddbmm_": lambda t, x: x[None, :, :3].baddbmm_(
        x.clone()[None], x.clone().t()[None]
    ),
    "from_numpy": lambda t, x: (t.from_numpy(x.numpy()).add_(1), x)[1],
    "as_tensor": lambda t, x: (t.as_tensor(x.numpy()).add_(1), x)[1],
    "from_numpy, list": lambda t, x: t.from_numpy([1]),
    "numpy": lambda t, x: t.tensor(
        x.numpy() + np.add.reduce(x.numpy()) + x.numpy().sum()
    ),
    "foreach": lambda t, x: t._foreach_copy_([t.empty(3, 4)], [x])[0],
    "foreach, lengths": lambda t, x: t._foreach_copy_([x], [x, x]),
    "foreach, none": lambda t, x: t._foreach_copy_([], []),
    "isclose": lambda t, x: t.isclose(x, x * 1.000001),
    "isclose, whole": lambda t, x: t.isclose(x.int(), x.int() // 2, atol=1),
    "isclose, truth": lambda t, x: x.bool().isclose(x > 3),
    "isclose, exact": lambda t, x: t.isclose(x, x + 1e-7, 0, 0),
    "isclose, infinite": lambda t, x: t.isclose(1 / x, 1 / (x * 1.0000001)),
    "isclose, NaN": lambda t, x: t.isclose(x / x, x / x, equal_nan=True),
    "isclose, types": lambda t, x: t.isclose(x, x.double()),
    "isclose, below 0": lambda t, x: t.isclose(x, x, rtol=-1),
    "allclose": lambda t, x: t.allclose(1 / x, 1 / x),
    "assert_close": lambda t, x: t.testing.assert_close(x, x + 1e-6),
    "assert_close, not": lambda t, x: t.testing.assert_close(x, x + 1),
    "assert_close, types": lambda t, x: t.testing.assert_close(x, x.double()),
    "assert_close, any type": lambda t, x: t.testing.assert_close(
        x, x.double(), check_dtype=False
    ),
    "assert_close, shapes": lambda t, x: t.testing.assert_close(x, x[:1]),
    "assert_close, half": lambda t, x: t.testing.assert_close(x, x, rtol=0.1),
    "precision": lambda t, x: t.get_float32_matmul_precision(),
    "TF32": lambda t, x: t.backends.cuda.matmul.allow_tf32,
    "device": lambda t, x: str(t.get_default_device()),
    "the same memory": lambda t, x: x.copy_(x.view(3, 4)),
}


@pytest.mark.parametrize("name", SPELLED)
def test_what_pytorch_takes_is_taken_alike(name: str) -> None:
    assert_same(SPELLED[name], X)


@pytest.mark.parametrize(
    "use",
    [
        "torch.norm(x, axis=0)",
        "x.split(1, axis=0)",
        "F.softmax(x, axis=0)",
        "x.view(shape=4)",
        "x.split(split_size_or_sections=2)",
    ],
)
def test_what_pytorch_does_not_take_is_refused(use: str) -> None:
    source = f"import torch\nimport torch.nn.functional as F\n{use}"
    with pytest.raises(Missing, match="`(axis|shape|split_size_or_sections)` of torch"):
        record(source, {"x": (FOUR, "host")})


def test_new_tensors_are_where_is_said_once() -> None:
    program = record(
        """
        import torch
        with torch.device("cuda"):
            a = torch.zeros(3)
            with torch.device("cpu"):
                b = torch.arange(3)
            c = torch.tensor([1.0])
            assert torch.get_default_device().type == "cuda"
        assert torch.empty_like(b).device.type == "cpu"
        torch.set_default_device("cuda")
        d = torch.as_tensor(b)
        torch.set_default_device(None)
        assert not torch.ones(2).is_cuda
        """
    )
    places = [one.place for one in of_kind(program, Allocate)]
    assert places == [
        *("device", "pageable", "pageable", "device"),
        *("pageable", "device", "pageable"),
    ]


def test_settings_that_change_nothing_are_taken() -> None:
    program = record(
        """
        import torch
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.set_float32_matmul_precision("highest")
        torch.cuda.set_sync_debug_mode("warn")
        x.pin_memory("cuda")
        mark = torch.Event(device="cuda")
        mark.record(torch.accelerator.current_stream())
        mark.synchronize()
        assert torch.cuda.Stream().device_index == 0
        """,
        {"x": (FOUR, "pinned")},
    )
    assert kinds(program) == ["RecordEvent", "Synchronize"]


def test_many_tensors_are_copied_by_one_kernel_or_one_by_one() -> None:
    program = record(
        """
        import torch
        here = [torch.zeros(4, device="cuda") for _ in range(2)]
        torch._foreach_copy_(here, [x, x], non_blocking=True)
        torch._foreach_copy_(here, [d, d])
        assert here[1].tolist() == [0, 1, 2, 3]
        """,
        {"x": (FOUR * 2, "pinned"), "d": (FOUR, "device")},
    )
    assert [one.is_asynchronous for one in of_kind(program, Copy)] == [True, True]
    assert [len(one.writes) for one in of_kind(program, Launch)] == [1, 1, 2]


@pytest.mark.parametrize(
    ("use", "told"),
    [
        ("torch.backends.cuda.matmul.allow_tf32 = True", "exact here: leave it out"),
        ("torch.set_float32_matmul_precision('high')", "exact here: leave it out"),
        ("torch.cuda.set_sync_debug_mode('error')", "where the host waits"),
        ("torch.cuda.make_graphed_callables(1, 2)", "Use `torch.cuda.graph`"),
        ("torch.cuda.CUDAGraph().instantiate()", "CUDAGraph.instantiate"),
        ("torch.cuda.CUDAGraph().debug_dump('x')", "CUDAGraph.debug_dump"),
        ("torch.cuda.Stream().nothing", "Stream.nothing"),
        ("torch.cuda.Stream.priority_range()", "There are the priorities 0 and -1"),
        ("torch.cuda.Event().ipc_handle()", "Event.ipc_handle"),
        ("torch.device('cuda').nothing", "torch.device.nothing"),
        ("torch.zeros(3).storage()", "Use `x.data_ptr"),
        ("torch.Tensor([1.0])", "Use `torch.tensor` or `torch.empty`"),
        ("torch.Tensor(2, 3)", "Use `torch.tensor` or `torch.empty`"),
        ("class Net(torch.nn.Module): pass", "nn.Module.* Write functions of tensors"),
        ("torch.tensor(torch.zeros(3), device='cuda')", r"x.to\('cuda'\)"),
        ("torch.from_numpy(np.ones(3))", "Use `torch.tensor`, which copies"),
        ("torch.zeros(3, out=torch.empty(4))", "`out` of another shape"),
        ("torch.empty(3, layout='sparse')", "layout sparse"),
        ("torch.Event(device='cpu')", "Say device='cuda'"),
    ],
)
def test_what_is_missing_says_so_and_what_to_do(use: str, told: str) -> None:
    with pytest.raises(Missing, match=told):
        record(f"import torch\nimport numpy as np\n{use}")


@pytest.mark.parametrize(
    ("use", "told"),
    [
        ("torch.cuda.Event().query()", r"use `synchronize\(\)`"),
        ("torch.cuda.Stream().query()", r"use `synchronize\(\)`"),
        ("mark = torch.cuda.Event()\nmark.elapsed_time(mark)", "leave the timing out"),
        ("torch.zeros(3).numpy()[0] = 1", r"write with `x.copy_\(...\)`"),
        ("a = torch.zeros(3).numpy()\na += 1", r"write with `x.copy_\(...\)`"),
    ],
)
def test_what_is_not_known_without_a_gpu_has_another_way(use: str, told: str) -> None:
    with pytest.raises((RuntimeError, ValueError), match=told) as caught:
        record(f"import torch\n{use}")
    assert "\n" not in str(caught.value)


def test_an_array_shows_itself_as_any_other() -> None:
    array: Any = simulated().ones(2).numpy()
    assert repr(array) == "array([1., 1.], dtype=float32)"
    assert array.tensor is not None and array[:1].tensor is None
