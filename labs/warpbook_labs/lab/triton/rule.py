"""How a Triton submission wants its kernels launched: comments like Triton's launches.

    # scratch: partial float32[ceil_div(n, 1024)]
    # launch: total[ceil_div(n, 1024)](x, partial, n, BLOCK=1024, num_warps=4)

Between the square brackets is the grid, one expression or up to three. Arguments
are buffers, scalars and sizes in the order of the kernel's parameters, or by name; its
`tl.constexpr` parameters, by name or in their place; and `num_warps` and `num_stages`.
"""

from __future__ import annotations

import re

from warpbook_labs.errors import BadRule
from warpbook_labs.lab.launch_rule import Launch, Rule, read_lines, split
from warpbook_labs.lab.triton.source import Kernel, translated

#: threads of a warp
WARP = 32
DEFAULT_WARPS, DEFAULT_STAGES = 4, 3
_OPTIONS = {"num_warps": (1, 2, 4, 8, 16, 32), "num_stages": tuple(range(1, 9))}
# one bracket of each kind: what lies between is split with care for inner ones
_LAUNCH = re.compile(r"([A-Za-z_]\w*)\s*\[(.*)\]\s*\((.*)\)\s*$")
_NAMED = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)\s*(.+)$")


def read_triton_rule(source: str) -> Rule:
    """Read the rule out of a source, and compare it with the source's kernels.

    Raises:
        BadRule: there is none, or it is invalid.
        BadTriton: the source is no Triton that could be checked.
    """
    kernels, _, numbers = translated(source)
    known = {name: number for name, number in numbers.items() if type(number) is int}
    example = "# launch: my_kernel[ceil_div(n, 1024)](x, out, n, BLOCK=1024)"
    return read_lines(
        source, "#+", lambda text, line: _launch(text, line, kernels), example, known
    )


def _launch(text: str, line: int, kernels: dict[str, Kernel]) -> Launch:
    match = _LAUNCH.match(text)
    if match is None:
        raise BadRule("a launch is written kernel[grid](arguments).", line)
    kernel = kernels.get(match[1])
    if kernel is None:
        known = ", ".join(f"`{name}`" for name in kernels)
        raise BadRule(f"there is no kernel `{match[1]}`, only {known}.", line)
    grid = split(match[2])
    if len(grid) == 1 and grid[0].startswith("(") and grid[0].endswith(")"):
        # Triton's own launches have a tuple there, such as [(8, 8)]
        inner = split(grid[0][1:-1])
        grid = inner if len(inner) > 1 or grid[0].endswith(",)") else grid
    if not 1 <= len(grid) <= 3:
        raise BadRule("a grid has one to three sides.", line)
    given: list[str] = []
    named: dict[str, str] = {}
    for word in split(match[3]):
        name = _NAMED.match(word)
        if name is None and named:
            raise BadRule(f"`{word}` must stand before what has a name.", line)
        if name is None:
            given.append(word)
        elif name[1] in named:
            raise BadRule(f"`{name[1]}` is given twice.", line)
        else:
            named[name[1]] = name[2]
    warps = _option("num_warps", named, DEFAULT_WARPS, line)
    _option("num_stages", named, DEFAULT_STAGES, line)
    given, named = _bound(kernel, given, named, line)
    return Launch(
        kernel.name,
        grid,
        (str(WARP * warps),),
        "0",
        tuple(given),
        line,
        tuple(named.items()),
    )


def _option(name: str, named: dict[str, str], default: int, line: int) -> int:
    text = named.setdefault(name, str(default))
    allowed = _OPTIONS[name]
    if not text.isdecimal() or int(text) not in allowed:
        known = ", ".join(map(str, allowed))
        raise BadRule(f"{name} is one of {known}.", line)
    return int(text)


def _bound(
    kernel: Kernel, given: list[str], named: dict[str, str], line: int
) -> tuple[list[str], dict[str, str]]:
    """Return arguments in the order of the parameters, then constants by name.

    Raises:
        BadRule: they are not those of the kernel.
    """
    for name in named:
        if name not in (*_OPTIONS, *kernel.parameters):
            raise BadRule(f"`{kernel.name}` has no parameter `{name}`.", line)
    places = [name for name in kernel.parameters if name not in named]
    wanted = [name for name in places if name not in kernel.constants]
    # constants may be given by their place, too
    by_place = dict(
        zip(places if len(given) > len(wanted) else wanted, given, strict=False)
    )
    bound = {**kernel.defaults, **by_place, **named}
    missing = [name for name in kernel.constants if name not in bound]
    if missing:
        raise BadRule(
            f"`{missing[0]}` is a tl.constexpr of `{kernel.name}`: give "
            f"it a number, such as {missing[0]}=1024.",
            line,
        )
    arguments = [name for name in kernel.parameters if name not in kernel.constants]
    if len(by_place) != len(given) or any(name not in bound for name in arguments):
        raise BadRule(
            f"`{kernel.name}` takes {len(arguments)} arguments "
            f"({', '.join(arguments)}) beside its constants; {len(given)} are given.",
            line,
        )
    constants = {name: bound[name] for name in bound if name not in arguments}
    return [bound[name] for name in arguments], constants
