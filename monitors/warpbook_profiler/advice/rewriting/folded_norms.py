"""Modules of which a cell computes with copies, whose batch norms are folded."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.live_modules import LiveModules, write_after
from warpbook_profiler.advice.code.source_edit import SourceEdit

#: they tell of a module's parts and weights, or change it
_OF_PARTS = ("register_", "named_", "load_", "parameters", "buffers", "state_dict")
_FOLDING = '''\
import copy
import torch.fx
import torch.nn.utils.fusion
def {folded}(module):
    """Return a copy whose batch norms are part of the convolutions before them."""
    nn, done = {torch}.nn, set()
    if type(module) in (list, tuple):
        return type(module)(map({folded}, module))
    if not isinstance(module, nn.Module) or any(
        one._forward_hooks or one._forward_pre_hooks for one in module.modules()
    ):
        return module
    module, fuse = copy.deepcopy(module), nn.utils.fusion.fuse_conv_bn_eval
    layers = nn.Conv1d, nn.Conv2d, nn.Conv3d
    norms = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
    for part in [*module.modules()]:
        if part in done:
            continue
        try:
            nodes = [*{torch}.fx.Tracer().trace(part).nodes]
        except Exception:
            # its calls depend on its input: those of its parts may not
            continue
        done.update(part.modules())
        calls = {{}}
        for node in nodes:
            if node.op == "call_module":
                calls.setdefault(part.get_submodule(node.target), []).append(node)
        of_node = {{node: one for one, mine in calls.items() for node in mine}}
        for norm, mine in calls.items():
            before = {{of_node.get(node.args[0]) for node in mine if node.args}}
            layer = before.pop() if len(before) == 1 else None
            if type(norm) not in norms or type(layer) not in layers:
                continue
            users = [user for node in calls[layer] for user in node.users]
            if {{of_node.get(user) for user in users}} != {{norm}}:
                continue
            if len(users) != len(mine) or layer.training or norm.training:
                continue
            if norm.running_var is not None:
                new = fuse(layer, norm)
                instead = {{layer: new, norm: nn.Identity()}}
                for one in [*module.modules()]:
                    for name, child in [*one._modules.items()]:
                        setattr(one, name, instead.get(child, child))
    return module

'''


def folded_norms(code: CellCode) -> Iterator[str]:
    """Write the cell with copies of its modules, in which norms are folded."""
    edit, live = SourceEdit(code), LiveModules(code)
    folded, is_changed = edit.free_name("with_norms_folded"), False
    edit.at_start(_FOLDING.format(folded=folded, torch=edit.torch))
    computing = set(_computing(code.tree))
    for name in live.names:
        try:
            place, reads = live.ready(name), live.reads(name)
        except LookupError:
            continue
        if not computing.issuperset(reads):
            continue
        instead = edit.free_name(f"{name}_folded")
        write_after(edit, place, f"{instead} = {folded}({name})")
        for read in reads:
            edit.replace(read, instead)
        is_changed = True
    text = edit.source() if is_changed else ""
    if text:
        yield text


def _computing(tree: ast.AST) -> Iterator[ast.AST]:
    """Give what is called, gone over, or given to a function of the cell."""
    defined = {one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in (*defined, "map"):
                yield from node.args
                yield from (one.value for one in node.keywords)
            case ast.Call(func=function) if node.args or node.keywords:
                if not _is_of_parts(function):
                    yield _whole(function)
            case ast.For(iter=over) | ast.comprehension(iter=over):
                if not any(map(_is_of_parts, ast.walk(over))):
                    yield from ast.walk(over)


def _whole(node: ast.expr) -> ast.expr:
    """Give what an expression is a part of."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node


def _is_of_parts(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr.startswith(_OF_PARTS)
