"""A model as data: what a file of it says, and the models that are known by name.

A file is TOML or JSON in this form, or a `config.json` of Hugging Face
(`hugging_face.py`). It may be anybody's, so that it is bounded and checked here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from warpbook_monitors import toml_text
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.model_memory.hugging_face import blocks_of_config
from warpbook_monitors.model_memory.image_layers import Convolution
from warpbook_monitors.model_memory.layer import Few, Size
from warpbook_monitors.model_memory.layers import AnyLayer, Attention
from warpbook_monitors.plain_file import NotAPlainFile, check_plain
from warpbook_monitors.plain_text import bounded

_KNOWN = Path(__file__).parent / "known"
_MOST_BYTES = 4 << 20
_Text = Annotated[str, msgspec.Meta(max_length=300)]


class ModelError(MonitorError):
    """A model is not known, or its file can't be used; the message says what to do."""


class Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Layers that follow one another, and how often they do.

    Attributes:
        name: as the table has it.
        layers: in the order of the forward pass.
        times: how often they are repeated.
        edge: embeddings or a head: never recomputed, nor moved to another stage.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
    layers: Annotated[tuple[AnyLayer, ...], msgspec.Meta(min_length=1, max_length=30)]
    times: Few = 1
    edge: bool = False

    def parameters(self, tensor: int = 1) -> int:
        """Count the parameters of all its repetitions on a tensor-parallel GPU."""
        return self.times * sum(layer.parameters(tensor) for layer in self.layers)


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model.

    Attributes:
        name: as people write it.
        source: where the figures are published.
        blocks: in the order of the forward pass.
        tokens: of a sequence, where nothing else is said.
        most_tokens: that its table of positions has; 0 where there is no such table.
        fixed_tokens: it takes sequences of `tokens` and no other length.
        side: of its images in pixels; 0 if it reads text.
    """

    name: _Text
    source: _Text
    blocks: Annotated[tuple[Block, ...], msgspec.Meta(min_length=1, max_length=300)]
    tokens: Size = 1
    most_tokens: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0
    fixed_tokens: bool = False
    side: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0

    @property
    def parameters(self) -> int:
        return sum(block.parameters() for block in self.blocks)

    def layers_of(self, kind: type[Any]) -> list[Any]:
        """List the layers of a kind, each once."""
        return [
            layer
            for block in self.blocks
            for layer in block.layers
            if isinstance(layer, kind)
        ]

    @property
    def is_decoder(self) -> bool:
        """Whether it decodes token by token, with a cache."""
        return any(layer.causal for layer in self.layers_of(Attention))

    @property
    def is_split_by_tensor(self) -> bool:
        """Whether tensor parallelism has anything to split."""
        return not self.layers_of(Convolution) or bool(self.layers_of(Attention))


def known_names() -> list[str]:
    return sorted(path.stem for path in _KNOWN.glob("*.toml"))


def read_model(name: str) -> Model:
    """Give a known model, or the one that a file describes.

    Args:
        name: of a known model, or a path that ends in .toml or .json.

    Raises:
        ModelError: it is neither, or the file is malformed.
    """
    if name in known_names():
        return _decoded(_KNOWN / f"{name}.toml")
    path = Path(name)
    if path.suffix not in (".toml", ".json"):
        raise ModelError(
            f"{bounded(name)} is no known model: take one of "
            f"{', '.join(known_names())}, or a file .toml or .json"
        )
    try:
        return _decoded(path)
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        what = "it is nested too deeply" if _is_deep(problem) else str(problem)
        raise ModelError(
            f"{bounded(name)} describes no model: {bounded(what, 300)} "
            "(docs/how-to/compute-memory.md has the form)"
        ) from None


def _is_deep(problem: Exception) -> bool:
    return isinstance(problem, RecursionError)


def _decoded(path: Path) -> Model:
    content = _content(path)
    if path.suffix == ".toml":
        return toml_text.decode(content, Model)
    fields = msgspec.json.decode(content)
    if isinstance(fields, dict) and "blocks" not in fields:
        fields = blocks_of_config(fields)
    return msgspec.convert(fields, Model)


def _content(path: Path) -> bytes:
    """Read a file of bounded size.

    Raises:
        ModelError: it can't be read, or is too large.
    """
    try:
        check_plain(path)
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except NotAPlainFile:
        raise ModelError(
            f"{bounded(str(path))} is no plain file; copy it to one"
        ) from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "no such path is possible"
        raise ModelError(
            f"{bounded(str(path))} can't be read: {reason}; give the path of a file"
        ) from None
    if len(content) > _MOST_BYTES:
        raise ModelError(
            f"{bounded(str(path))} has more than 4 MiB: a description has some KiB"
        )
    return content
