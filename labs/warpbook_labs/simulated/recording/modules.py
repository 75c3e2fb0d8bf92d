"""The modules that `import torch` finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from warpbook_labs.simulated.pointwise import promoted
from warpbook_labs.simulated.recording import (
    backends,
    comparing,
    convolution,
    elementwise,
    graphs,
    joining,
    layers,
    layout,
    matrices,
    precision,
    reducing,
    streams,
)
from warpbook_labs.simulated.recording.devices import (
    Device,
    get_default_device,
    set_default_device,
)
from warpbook_labs.simulated.recording.dtypes import FLOAT, dtype_of
from warpbook_labs.simulated.recording.elementwise import compute
from warpbook_labs.simulated.recording.methods import FUNCTIONS, TYPES
from warpbook_labs.simulated.recording.recorder import current
from warpbook_labs.simulated.recording.refusing import refuse, telling
from warpbook_labs.simulated.recording.tensor import Size, Tensor

NAME = "simulated GPU"
#: as an H200 has them
_CAPABILITY = (9, 0)


class _Nothing:
    """A context or decorator that changes nothing, since nothing is differentiated."""

    def __init__(self, mode: bool = True) -> None:
        del mode

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    def __enter__(self) -> None:
        return None

    def __exit__(self, *problem: object) -> None:
        return None


def _ignore(*arguments: Any, **options: Any) -> None:
    """Do nothing."""


def _module(name: str, content: Mapping[str, Any]) -> ModuleType:
    module = ModuleType(name, "A stand-in that records what it is asked.")

    def missing(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        refuse(f"{name}.{attribute}")

    vars(module).update(content)
    vars(module)["__getattr__"] = missing
    vars(module)["__path__"] = []
    return module


def _sleep(cycles: int) -> None:
    """One block of one thread that takes so many cycles."""
    recorder = current()
    recorder.launch("sleep", recorder.stream, [], [], (cycles,))


def _synchronize(device: object = None) -> None:
    del device
    current().synchronize_device()


def _set_sync_debug_mode(debug_mode: int | str) -> None:
    if debug_mode in (2, "error"):
        refuse(
            "torch.cuda.set_sync_debug_mode('error')",
            "The timeline shows where the host waits. ",
        )
    if debug_mode not in (0, 1, "default", "warn"):
        raise RuntimeError(
            "invalid value of debug_mode, expected one of `default`, `warn`, `error`"
        )


def _current_device() -> int:
    return 0


def _gelu(input: Tensor, approximate: str = "none") -> Tensor:
    return compute("gelu_tanh" if approximate == "tanh" else "gelu", [input])


def _relu(input: Tensor, inplace: bool = False) -> Tensor:
    return compute("relu", [input], out=input if inplace else None)


def _silu(input: Tensor, inplace: bool = False) -> Tensor:
    return compute("silu", [input], out=input if inplace else None)


def _is_tensor(thing: object) -> bool:
    return isinstance(thing, Tensor)


def _result_type(*operands: Any) -> Any:
    return elementwise.type_of(operands)


def _promote_types(left: Any, right: Any) -> Any:
    return dtype_of(promoted(left.numpy, right.numpy))


def _cuda() -> dict[str, Any]:
    return {
        "CUDAGraph": graphs.CUDAGraph,
        "Event": streams.Event,
        "Stream": streams.Stream,
        "StreamContext": streams.StreamContext,
        "_sleep": _sleep,
        "current_device": _current_device,
        "current_stream": streams.current_stream,
        "default_stream": streams.default_stream,
        "device": _Nothing,
        "device_count": lambda: 1,
        "empty_cache": _ignore,
        "get_device_capability": lambda device=None: _CAPABILITY,
        "get_device_name": lambda device=None: NAME,
        "graph": graphs.graph,
        "graph_pool_handle": lambda: (0, 0),
        "init": _ignore,
        "is_available": lambda: True,
        "is_current_stream_capturing": graphs.is_current_stream_capturing,
        "is_initialized": lambda: True,
        "manual_seed": _ignore,
        "manual_seed_all": _ignore,
        "max_memory_allocated": lambda device=None: current().most_allocated,
        "memory_allocated": lambda device=None: current().allocated,
        "reset_peak_memory_stats": lambda device=None: current().reset_peak(),
        "set_device": _ignore,
        "set_stream": streams.set_stream,
        "set_sync_debug_mode": _set_sync_debug_mode,
        "stream": streams.StreamContext,
        "synchronize": _synchronize,
    }


def _accelerator() -> dict[str, Any]:
    return {
        "current_accelerator": lambda check_available=False: Device("cuda"),
        "current_device_index": _current_device,
        "current_stream": streams.current_stream,
        "device_count": lambda: 1,
        "is_available": lambda: True,
        "set_stream": streams.set_stream,
        "synchronize": _synchronize,
    }


def _functional() -> dict[str, Any]:
    functions: dict[str, Callable[..., Any]] = {
        "conv2d": convolution.conv2d,
        "embedding": layers.embedding,
        "gelu": _gelu,
        "linear": matrices.linear,
        "log_softmax": reducing.log_softmax,
        "normalize": reducing.normalize,
        "pad": joining.pad,
        "relu": _relu,
        "sigmoid": FUNCTIONS["sigmoid"],
        "silu": _silu,
        "softmax": reducing.softmax,
        "tanh": FUNCTIONS["tanh"],
    }
    return {
        name: telling(f"torch.nn.functional.{name}", function)
        for name, function in functions.items()
    }


def _torch() -> dict[str, Any]:
    return {
        **FUNCTIONS,
        **TYPES,
        "Event": streams.DeviceEvent,
        "Size": Size,
        "Stream": streams.Stream,
        "Tensor": Tensor,
        "__version__": "2 (simulated)",
        "are_deterministic_algorithms_enabled": (
            backends.are_deterministic_algorithms_enabled
        ),
        "channels_last": layout.CHANNELS_LAST,
        "contiguous_format": layout.CONTIGUOUS,
        "conv2d": convolution.conv2d,
        "device": Device,
        "dtype": type(FLOAT),
        "enable_grad": _Nothing,
        "get_deterministic_debug_mode": backends.get_deterministic_debug_mode,
        "get_default_device": get_default_device,
        "get_default_dtype": lambda: FLOAT,
        "get_float32_matmul_precision": precision.get_float32_matmul_precision,
        "get_num_threads": lambda: 1,
        "inf": float("inf"),
        "inference_mode": _Nothing,
        "is_deterministic_algorithms_warn_only_enabled": (
            backends.is_deterministic_algorithms_warn_only_enabled
        ),
        "is_tensor": _is_tensor,
        "manual_seed": _ignore,
        "memory_format": layout.MemoryFormat,
        "nan": float("nan"),
        "no_grad": _Nothing,
        "pi": 3.141592653589793,
        "preserve_format": layout.PRESERVE,
        "promote_types": _promote_types,
        "result_type": _result_type,
        "set_default_device": set_default_device,
        "set_deterministic_debug_mode": backends.set_deterministic_debug_mode,
        "set_float32_matmul_precision": precision.set_float32_matmul_precision,
        "set_grad_enabled": _Nothing,
        "set_num_threads": _ignore,
        "strided": Tensor.layout,
        "use_deterministic_algorithms": backends.use_deterministic_algorithms,
    }


def _all() -> dict[str, ModuleType]:
    range_ = {"mark": _ignore, "range": _Nothing}
    range_ |= {"range_push": _ignore, "range_pop": _ignore}
    norm = telling("torch.linalg.vector_norm", reducing.vector_norm)
    matmul = {"matmul": precision.MatmulSettings()}
    modules = {
        "torch": _module("torch", _torch()),
        "torch.backends": backends.Backends("torch.backends"),
        "torch.accelerator": _module("torch.accelerator", _accelerator()),
        "torch.backends.cuda": _module("torch.backends.cuda", matmul),
        "torch.backends.cudnn": backends.CUDNN,
        "torch.cuda": _module("torch.cuda", _cuda()),
        "torch.cuda.nvtx": _module("torch.cuda.nvtx", range_),
        "torch.linalg": _module("torch.linalg", {"vector_norm": norm}),
        "torch.nn": _module("torch.nn", {"Embedding": layers.Embedding}),
        "torch.nn.functional": _module("torch.nn.functional", _functional()),
        "torch.nn.grad": _module(
            "torch.nn.grad", {"conv2d_weight": convolution.conv2d_weight}
        ),
        "torch.testing": _module(
            "torch.testing", {"assert_close": comparing.assert_close}
        ),
        "torch.utils": _module("torch.utils", {}),
        "torch.utils.deterministic": _module(
            "torch.utils.deterministic", {"fill_uninitialized_memory": True}
        ),
    }
    for name, module in modules.items():
        parent, _, last = name.rpartition(".")
        if parent:
            vars(modules[parent])[last] = module
    return modules


#: by name, as `sys.modules` has them
MODULES: dict[str, ModuleType] = _all()
