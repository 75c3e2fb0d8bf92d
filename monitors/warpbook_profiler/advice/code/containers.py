"""Which name from elsewhere holds a value that a cell computes with."""

from __future__ import annotations

import ast

from warpbook_profiler.advice.code.cell_code import walk
from warpbook_profiler.advice.code.value_flow import (
    FUNCTIONS,
    LOOPS,
    SCOPES,
    ValueFlow,
    place_of,
)

#: no more names are followed
_MOST_NAMES = 50


class Containers:
    """Lists, mappings and objects that a cell takes its values from."""

    def __init__(self, flow: ValueFlow) -> None:
        self._flow = flow

    def holding(self, node: ast.expr) -> str:
        """Return the name from elsewhere that holds a value, alone or among others.

        It is followed through loops, entries and arguments of the cell's functions.

        Returns:
            Nothing where names are several, it is computed, or can't be followed.
        """
        names, seen, left = set[str](), set[ast.expr](), [node]
        while left:
            one = left.pop()
            if one in seen:
                continue
            seen.add(one)
            origins = self._origins(one)
            if isinstance(one, ast.Name) and origins is None:
                names.add(one.id)
                continue
            if not origins or len(seen) > _MOST_NAMES:
                return ""
            left += origins
        return names.pop() if len(names) == 1 else ""

    def _origins(self, node: ast.expr) -> list[ast.expr] | None:
        """Return what a value is itself, or an item or entry of.

        Returns:
            An empty list where that is not sure; None for a name from elsewhere.
        """
        match node:
            case ast.Name(id=name):
                function, targets = self._scope(node)
                if isinstance(function, ast.FunctionDef):
                    return [] if targets else self._given(function, name)
                if not targets:
                    return None if function is None else []
                targets = self._reaching(node, targets)
                return self._iterated(targets[0]) if len(targets) == 1 else []
            case ast.Attribute(value=ast.Name() as holder):
                match self._flow.value(holder):
                    case ast.Call(func=ast.Name(id=kind), args=[one], keywords=[]):
                        # an object of a class holds what it is made with
                        return [one] if kind[:1].isupper() else []
                return []
            case ast.Subscript(value=value, slice=index) if self._is_place(index):
                return [value]
            case ast.Call(
                func=ast.Attribute(
                    attr="from_numpy" | "as_tensor", value=ast.Name(id="torch")
                ),
                args=[value],
            ):
                return [value]
            case ast.Call(
                func=ast.Attribute(attr="items" | "values", value=value), args=[]
            ):
                return [value]
            case ast.Call(
                func=ast.Name(id="enumerate" | "reversed" | "list" | "iter" | "tqdm"),
                args=[value, *_],
            ):
                return [value]
        return []

    def _reaching(self, read: ast.Name, targets: list[ast.Name]) -> list[ast.Name]:
        """Leave out where a name is only set after it is read, as in `x = x.to(dev)`.

        What a turn of a loop sets last, the next one reads, unless that sets it first.
        """
        at = self._flow.statement(read)
        before = [
            one
            for one in targets
            if place_of(one) < place_of(read) and self._flow.statement(one) is not at
        ]
        if len(before) != 1:
            return targets
        later = set(targets) - set(before)
        for loop in self._flow.around(read):
            if isinstance(loop, LOOPS):
                inside = set(walk(loop))
                if later & inside and before[0] not in inside:
                    return targets
        return before

    def _is_place(self, index: ast.expr, names: int = _MOST_NAMES) -> bool:
        """Tell whether an index is a key or a number, so that no tensor is made."""
        match index:
            case ast.Constant() | ast.JoinedStr():
                return True
            case ast.BinOp(left=left, right=right) if names:
                return self._is_place(left, names - 1) and self._is_place(
                    right, names - 1
                )
            case ast.Name(id=name) if names:
                function, targets = self._scope(index)
                if isinstance(function, ast.FunctionDef) and not targets:
                    given = self._given(function, name)
                    return bool(given) and all(
                        self._is_place(one, names - 1) for one in given
                    )
                return bool(targets) and all(map(self._is_key, targets))
        return False

    def _is_key(self, target: ast.expr) -> bool:
        """Tell whether a loop counts by a name, or goes over keys that are sorted."""
        above = self._flow.parent(target)
        is_first = isinstance(above, ast.Tuple) and above.elts[0] is target
        loop = self._flow.parent(above) if isinstance(above, ast.Tuple) else above
        match getattr(loop, "iter", None):
            case ast.Call(func=ast.Name(id="enumerate")):
                return is_first
            case ast.Call(func=ast.Attribute(attr="items"), args=[]):
                return is_first
            case ast.Call(func=ast.Name(id="range" | "sorted")):
                return above is loop
            case ast.Call(func=ast.Attribute(attr="keys"), args=[]):
                return above is loop
        return False

    def _iterated(self, target: ast.expr) -> list[ast.expr]:
        """Return what a name is set from."""
        inner: ast.AST = target
        for above in self._flow.around(target):
            if isinstance(above, ast.Tuple) and inner in above.elts:
                zipped = self._flow.parent(above)
                match getattr(zipped, "iter", None):
                    case ast.Call(func=ast.Name(id="zip"), args=given):
                        at = above.elts.index(inner)
                        return given[at : at + 1]
            elif isinstance(above, ast.For | ast.comprehension):
                return [above.iter] if above.target is inner else []
            elif isinstance(above, ast.Assign):
                return [above.value] if above.targets == [target] else []
            else:
                return []
            inner = above
        return []

    def _scope(self, read: ast.Name) -> tuple[ast.AST | None, list[ast.Name]]:
        """Return the function whose argument a name is, and where it is set there."""
        scopes = [one for one in self._flow.around(read) if isinstance(one, SCOPES)]
        for scope in [*scopes, None]:
            own = [one for one in self._flow.sets(read.id) if self._owner(one) is scope]
            arguments = walk(scope.args) if isinstance(scope, FUNCTIONS) else ()
            is_own = any(
                isinstance(one, ast.arg) and one.arg == read.id for one in arguments
            )
            if is_own or own:
                return (scope if is_own else None), own
        return None, []

    def _owner(self, target: ast.Name) -> ast.AST | None:
        """Return the function or comprehension that a name is set in."""
        return next(
            (one for one in self._flow.around(target) if isinstance(one, SCOPES)), None
        )

    def _given(self, function: ast.FunctionDef, name: str) -> list[ast.expr]:
        """Return what the cell's calls give for an argument of its own function."""
        names = [one.arg for one in function.args.args]
        if name not in names or self._flow.is_set(function.name):
            return []
        at, found = names.index(name), list[ast.expr]()
        for read in self._flow.reads(function.name):
            call = self._flow.parent(read)
            match call:
                case ast.Call(func=func, args=given, keywords=named) if func is read:
                    given = [*given[at : at + 1]]
                    given += [one.value for one in named if one.arg == name]
                    found += given or [read]
                case ast.Call(func=ast.Name(id="map"), args=[_, *given]):
                    found += given[at : at + 1] or [read]
                case _:
                    return []
        return found
