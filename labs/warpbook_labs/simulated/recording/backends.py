"""What the libraries below PyTorch may do: `torch.backends`, and determinism."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from warpbook_labs.simulated.recording.recorder import current
from warpbook_labs.simulated.recording.refusing import refuse

_PRECISIONS = ("ieee", "tf32", "bf16", "none")
#: where a precision is looked up until one is not "none"
_LOOKED_UP = {
    "all": ("all",),
    "cudnn": ("cudnn", "all"),
    "conv": ("conv", "cudnn", "all"),
    "rnn": ("rnn", "cudnn", "all"),
}
#: of what nobody has set
_USUAL = {"conv": "tf32", "rnn": "tf32"}
_MIXED = (
    "PyTorch is checking whether allow_tf32 is enabled for cuDNN without a specific "
    "operator name,but the current flag(s) indicate that cuDNN conv and cuDNN RNN have "
    "different TF32 flags.This combination indicates that you have used a mix of the "
    "legacy and new APIs to set the TF32 flags. We suggest only using the new API to "
    "set the TF32 flag(s). See also: https://pytorch.org/docs/main/notes/cuda.html"
    "#tensorfloat-32-tf32-on-ampere-and-later-devices"
)
_MODES = ("default", "warn", "error")


def precision(of: str) -> str:
    """How float32 is computed by convolutions, say: `"ieee"`, `"tf32"`, or `"none"`."""
    settings = current().settings
    for each in _LOOKED_UP[of]:
        found: str = settings.get(f"precision of {each}", "none")
        if found != "none":
            # the processor's libraries know it, those of the GPU don't
            return "none" if found == "bf16" and of != "all" else found
    return "none" if f"precision of {of}" in settings else _USUAL.get(of, "none")


def set_precision(of: str, name: str) -> None:
    """Have float32 computed so from now on."""
    if not isinstance(name, str):
        raise TypeError(
            "_set_fp32_precision_setter(): incompatible function arguments. "
            f"fp32_precision is one of {', '.join(_PRECISIONS)}, not {name!r}"
        )
    if name not in _PRECISIONS:
        raise RuntimeError(f"Unknown precision: {name}")
    if name == "bf16" and of != "all":
        raise RuntimeError(f"backend 'cuda' does not support precision '{name}'")
    current().settings[f"precision of {of}"] = name


class Precision:
    """`torch.backends.cudnn.conv`, or `.rnn`."""

    __slots__ = ("_of",)

    def __init__(self, of: str) -> None:
        """Say of which operations it is."""
        self._of = of

    def __getattr__(self, name: str) -> Any:
        """Say that PyTorch has no more than this."""
        raise AttributeError(f"Unknown attribute {name}")

    @property
    def fp32_precision(self) -> str:
        """`"tf32"`, `"ieee"` or `"none"`, which is as accurate."""
        return precision(self._of)

    @fp32_precision.setter
    def fp32_precision(self, name: str) -> None:
        set_precision(self._of, name)


class _Settings(ModuleType):
    """A module whose properties are settings."""

    #: what PyTorch has besides
    _absent: frozenset[str] = frozenset()

    def __init__(self, name: str) -> None:
        """Be a package, so that modules in it can be imported."""
        super().__init__(name)
        vars(self)["__path__"] = []

    def __getattr__(self, name: str) -> Any:
        """Say what the simulated GPU has not."""
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse(name)

    def __setattr__(self, name: str, value: object) -> None:
        """Change a setting."""
        if not isinstance(getattr(type(self), name, None), property):
            self._refuse(name)
        super().__setattr__(name, value)

    def _refuse(self, name: str) -> None:
        """Say which setting was meant, unless PyTorch has this one.

        Raises:
            AttributeError: always.
        """
        if name in self._absent:
            refuse(f"{self.__name__}.{name}")
        settings = [
            each
            for each in dir(type(self))
            if isinstance(getattr(type(self), each), property)
        ]
        near = get_close_matches(name, settings, 1)
        meant = f"; did you mean `{near[0]}`?" if near else "."
        raise AttributeError(f"{self.__name__} has no setting `{name}`{meant}")


def _switch(name: str, usual: bool) -> Any:
    """A setting that is on or off."""

    def get(self: object) -> bool:
        found: bool = current().settings.get(name, usual)
        return found

    def change(self: object, value: bool) -> None:
        _only_bool(f"set_{name}_cudnn", value)
        current().settings[name] = value

    return property(get, change)


def _only_bool(name: str, value: object) -> None:
    if not isinstance(value, bool):
        kind = type(value).__name__
        raise RuntimeError(f"{name} expects a bool, but got {kind}")


class Backends(_Settings):
    """`torch.backends`."""

    _absent = frozenset(
        "cpu cuda cusparselt kleidiai mha miopen mkl mkldnn mps nnpack openmp "
        "opt_einsum python_native quantized set_flags".split()
    )

    @property
    def fp32_precision(self) -> str:
        """What holds where nothing else is said."""
        return precision("all")

    @fp32_precision.setter
    def fp32_precision(self, name: str) -> None:
        set_precision("all", name)

    @contextmanager
    def flags(self, fp32_precision: str = "none") -> Iterator[None]:
        """Another precision for a while."""
        before = self.fp32_precision
        self.fp32_precision = fp32_precision
        try:
            yield
        finally:
            self.fp32_precision = before


class Cudnn(_Settings):
    """`torch.backends.cudnn`: settings that the next convolution reads."""

    _absent = frozenset(("depthwise_kernel", "is_acceptable"))
    conv, rnn = Precision("conv"), Precision("rnn")
    benchmark = _switch("benchmark", False)
    deterministic = _switch("deterministic", False)

    @property
    def enabled(self) -> bool:
        """Whether cuDNN computes convolutions at all."""
        return "disabled in line" not in current().settings

    @enabled.setter
    def enabled(self, value: bool) -> None:
        _only_bool("set_enabled_cudnn", value)
        recorder = current()
        recorder.settings.pop("disabled in line", None)
        if not value:
            recorder.settings["disabled in line"] = recorder.line()

    @property
    def benchmark_limit(self) -> int:
        """How many algorithms may be tried; the model tries as many as it does."""
        found: int = current().settings.get("benchmark_limit", 10)
        return found

    @benchmark_limit.setter
    def benchmark_limit(self, value: int) -> None:
        current().settings["benchmark_limit"] = value

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 may be computed in TF32: the older way to ask."""
        found: bool = current().settings.get("allow_tf32", True)
        if any((precision(of) == "tf32") != found for of in ("conv", "rnn")):
            raise RuntimeError(_MIXED)
        return found

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        _only_bool("set_allow_tf32_cublas", value)  # as PyTorch calls it
        current().settings["allow_tf32"] = value
        for of in ("conv", "rnn"):
            set_precision(of, "tf32" if value else "none")

    @property
    def fp32_precision(self) -> str:
        """What holds for those of its operations that say nothing else."""
        return precision("cudnn")

    @fp32_precision.setter
    def fp32_precision(self, name: str) -> None:
        set_precision("cudnn", name)

    def is_available(self) -> bool:
        """Whether there is cuDNN."""
        return True

    def version(self) -> None:
        """Nobody knows a GPU's: None, which PyTorch gives where there is none."""

    def set_flags(
        self,
        _enabled: bool | None = None,
        _benchmark: bool | None = None,
        _benchmark_limit: int | None = None,
        _deterministic: bool | None = None,
        _allow_tf32: bool | None = None,
        _fp32_precision: str | None = "none",
    ) -> tuple[Any, ...]:
        """Change all settings that are not None; give what held before."""
        wanted = {
            "enabled": _enabled,
            "benchmark": _benchmark,
            "benchmark_limit": _benchmark_limit,
            "deterministic": _deterministic,
            "allow_tf32": _allow_tf32,
            "fp32_precision": _fp32_precision,
        }
        before = tuple(getattr(self, name) for name in wanted)
        for name, value in wanted.items():
            if value is not None:
                setattr(self, name, value)
        return before

    @contextmanager
    def flags(
        self,
        enabled: bool = False,
        benchmark: bool = False,
        benchmark_limit: int = 10,
        deterministic: bool = False,
        allow_tf32: bool = True,
        fp32_precision: str = "none",
    ) -> Iterator[None]:
        """Other settings for a while; what is not named has these defaults."""
        before = self.set_flags(
            enabled,
            benchmark,
            benchmark_limit,
            deterministic,
            allow_tf32,
            fp32_precision,
        )
        try:
            yield
        finally:
            self.set_flags(*before)


CUDNN = Cudnn("torch.backends.cudnn")

# determinism of all of PyTorch


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Only algorithms that give the same bits each time."""
    if not isinstance(mode, bool):
        raise TypeError(
            "_set_deterministic_algorithms(): argument 'mode' (position 1) must be "
            f"bool, not {type(mode).__name__}"
        )
    warns = "warn" if warn_only else "error"
    current().settings["determinism"] = warns if mode else "default"


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same, with a warning or an error where there is no such algorithm."""
    if isinstance(debug_mode, str) and debug_mode not in _MODES:
        raise RuntimeError(
            "invalid value of debug_mode, expected one of `default`, `warn`, `error`, "
            f"but got {debug_mode}"
        )
    if not isinstance(debug_mode, str):
        if debug_mode not in range(len(_MODES)):
            raise RuntimeError(
                "invalid value of debug_mode, expected 0, 1, or 2, but got "
                f"{debug_mode}"
            )
        debug_mode = _MODES[debug_mode]
    current().settings["determinism"] = debug_mode


def get_deterministic_debug_mode() -> int:
    """Tell it."""
    return _MODES.index(current().settings.get("determinism", "default"))


def are_deterministic_algorithms_enabled() -> bool:
    """Whether only such are used."""
    return get_deterministic_debug_mode() > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether others would be used with a warning."""
    return get_deterministic_debug_mode() == 1
