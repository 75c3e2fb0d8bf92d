"""Filters, and a model's images, in channels_last.

Somebody may hold a view of a filter, or look at a result as a layout allows it: no
source tells that of modules from other cells.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import CellCode, bound_names
from warpbook_profiler.advice.code.live_modules import LiveModules, write_after
from warpbook_profiler.advice.code.source_edit import SourceEdit

_LAID_OUT = '''\
def {laid_out}(*values):
    """Lay filters out as channels_last, of modules and in what holds them."""
    for value in values:
        if isinstance(value, {torch}.nn.Module):
            value.to({layout})
        elif type(value) is {torch}.Tensor and value.dim() == 4 and value._base is None:
            value.data = value.data.contiguous({layout})
        elif type(value) in (list, tuple):
            {laid_out}(*value)
        elif type(value) is dict:
            {laid_out}(*value.values())

'''


def channels_last(code: CellCode) -> Iterator[str]:
    """Give the cell with modules in channels_last, first with a model's images, too.

    Convolutions whose filters are in it make their input so, too, each time.
    """
    for has_images in (True, False):
        if text := _laid_out(code, has_images):
            yield text


def _laid_out(code: CellCode, has_images: bool) -> str:
    live, edit = LiveModules(code), SourceEdit(code)
    layout = f"memory_format={edit.torch}.channels_last"
    filters = [
        name
        for one in code.calls("conv2d")
        for given in one.node.args[1:2]
        for name in live.roots(given)
    ]
    places: dict[ast.stmt | None, list[str]] = {}
    for name in dict.fromkeys([*live.names, *filters]):
        with contextlib.suppress(LookupError):
            places.setdefault(live.ready(name), []).append(name)
    laid_out = edit.free_name("to_channels_last")
    edit.at_start(_LAID_OUT.format(laid_out=laid_out, layout=layout, torch=edit.torch))
    for place, names in places.items():
        write_after(edit, place, f"{laid_out}({', '.join(names)})")
    if not places or (has_images and not _lay_images(code, edit, layout)):
        return ""
    return edit.source()


def _lay_images(code: CellCode, edit: SourceEdit, layout: str) -> bool:
    """Write that images which a model is called with are so; False without them."""
    call, own = code.model_call(), bound_names(code.tree)
    match call.node.args if call is not None and call.name not in own else []:
        case [ast.Name(id=images)] if images not in own:
            name = edit.free_name(f"{images}_last")
        case _:
            return False
    edit.at_start(f"{name} = {images}.to({layout})")
    for other in code.calls(call.name if call is not None else ""):
        if [ast.unparse(one) for one in other.node.args] == [images]:
            edit.replace(other.node.args[0], name)
    return True
