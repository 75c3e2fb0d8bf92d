"""What a cell's source does that can't be undone, told before anything is tried.

It reads the syntax tree of the cell and of the person's own functions that it calls.
What it can't see, such as a library that writes a file, `guarded` stops as it runs.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

from warpbook.kernel.trying.refusals import NotIsolated
from warpbook.kernel.trying.source import Body

_FILES = "writes files"
_NETWORK = "talks over the network"
_PROCESS = "starts or signals processes"
_THREADS = "starts threads"
_HIDDEN = "runs code that is not in sight"
_PICTURES = "draws with matplotlib, which keeps its figures"
_PROCESSES_OF_A_RUN = "works with other processes"
#: by module: everything that is called in it
_MODULES = {
    **dict.fromkeys(
        ("shutil", "tempfile", "sqlite3", "torch.utils.tensorboard"), _FILES
    ),
    **dict.fromkeys(
        (
            *("socket", "urllib", "requests", "httpx", "aiohttp", "http", "ftplib"),
            *("smtplib", "boto3", "wandb", "mlflow", "huggingface_hub", "torch.hub"),
        ),
        _NETWORK,
    ),
    **dict.fromkeys(("subprocess", "signal", "multiprocessing"), _PROCESS),
    "torch.multiprocessing": _PROCESS,
    "torch.distributed": _PROCESSES_OF_A_RUN,
    **dict.fromkeys(("threading", "_thread", "concurrent"), _THREADS),
    **dict.fromkeys(("matplotlib", "seaborn"), _PICTURES),
}
_OS_FILES = (
    *("remove", "unlink", "rename", "replace", "mkdir", "makedirs", "rmdir"),
    *("removedirs", "symlink", "link", "truncate", "write", "chmod"),
)
_OS_PROCESSES = ("system", "popen", "kill", "fork", "_exit", "abort", "startfile")
#: by the function's full name
_FUNCTIONS = {
    **{f"os.{name}": _FILES for name in _OS_FILES},
    **{f"posix.{name}": _FILES for name in _OS_FILES},
    **{f"os.{name}": _PROCESS for name in _OS_PROCESSES},
    **{f"posix.{name}": _PROCESS for name in _OS_PROCESSES},
    **dict.fromkeys(
        (
            *("torch.save", "torch.serialization.save", "numpy.save", "numpy.savez"),
            *("numpy.savetxt", "numpy.savez_compressed", "pickle.dump", "json.dump"),
            *("joblib.dump", "torch.onnx.export", "torch.jit.save"),
        ),
        _FILES,
    ),
    **dict.fromkeys(("builtins.input", "getpass.getpass"), "asks for input"),
    **dict.fromkeys(("builtins.breakpoint", "pdb.set_trace"), "stops in a debugger"),
    **dict.fromkeys(("builtins.exec", "builtins.eval", "builtins.compile"), _HIDDEN),
    **dict.fromkeys(("builtins.exit", "builtins.quit", "sys.exit"), "ends the kernel"),
}
#: of whatever object
_METHODS = {
    **dict.fromkeys(
        (
            *("write_text", "write_bytes", "to_csv", "to_parquet", "to_pickle"),
            *("savefig", "save_pretrained", "unlink", "mkdir", "rmdir", "tofile"),
            *("to_hdf", "to_feather", "to_excel", "to_sql", "touch", "save"),
        ),
        _FILES,
    ),
    "push_to_hub": _NETWORK,
}
#: what these set is put back after each run
_KEPT_SETTINGS = ("torch.backends", "torch.cuda", "torch.mps")


def check(body: Body, namespace: Mapping[str, Any]) -> None:
    """Refuse a cell with side effects that can't be isolated.

    Raises:
        NotIsolated: what it does, and where.
    """
    _Checker(namespace, "", is_cell=True).visit(body.tree)
    done: set[FunctionType] = set()
    waiting = list(_own_functions(body.tree, namespace))
    while waiting:
        function = waiting.pop()
        if function in done:
            continue
        done.add(function)
        tree = _source_of(function)
        if tree is None:
            continue
        known = {**function.__globals__, **_closure(function)}
        _Checker(known, function.__qualname__).visit(tree)
        waiting += _own_functions(tree, known)


def is_own_code(path: str) -> bool:
    """Tell whether a file is the person's, and no part of Python or a package."""
    return not (
        "site-packages" in path
        or "dist-packages" in path
        or path.startswith(_STANDARD_LIBRARY)
        or path.startswith("<frozen")
    )


_STANDARD_LIBRARY = inspect.getsourcefile(inspect).removesuffix("inspect.py")  # type: ignore[union-attr]


class _Checker(ast.NodeVisitor):
    """Raises at the first thing that can't be undone."""

    def __init__(
        self, namespace: Mapping[str, Any], where: str, is_cell: bool = False
    ) -> None:
        self._namespace = namespace
        self._where = where
        #: the statements are the cell's own, not a function's within it
        self._is_cell = is_cell
        self._imported: dict[str, str] = {}
        #: names that the statements have set so far
        self._set: set[str] = set()

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            self._imported[alias.asname or name] = name

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            name = f"{node.module or ''}.{alias.name}"
            self._imported[alias.asname or alias.name] = name

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._within(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._within(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._within(node)

    def visit_Await(self, node: ast.Await) -> None:
        if self._is_cell:
            self._refuse("awaits something", node)
        self.generic_visit(node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        if self._is_cell:
            self._refuse("awaits something", node)
        self.generic_visit(node)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> None:
        if self._is_cell:
            self._refuse("awaits something", node)
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        targets = [one.id for one in node.targets if isinstance(one, ast.Name)]
        # what the cell itself made, no copy holds
        if self._is_cell and not self._set.issuperset(targets):
            self._refuse("deletes a name, whose memory a copy would hold", node)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            self._check_owner(node)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self._set.add(node.id)
        if node.id == "get_ipython":
            self._refuse("uses a magic or the shell", node)

    def visit_Call(self, node: ast.Call) -> None:
        name = self._full_name(node.func)
        if name is not None:
            if name in ("builtins.open", "io.open", "_io.open"):
                self._check_open(node)
            reason = _FUNCTIONS.get(name) or _by_module(name)
            if reason is not None:
                self._refuse(reason, node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            self._refuse(_METHODS[node.func.attr], node)
        self.generic_visit(node)

    def _within(self, node: ast.AST) -> None:
        outer, self._is_cell = self._is_cell, False
        self.generic_visit(node)
        self._is_cell = outer

    def _check_owner(self, node: ast.Attribute) -> None:
        """Refuse to set what belongs to a module or to a library's class."""
        owner = self._value(node.value)
        if isinstance(owner, ModuleType) or _is_librarys_class(owner):
            name = getattr(owner, "__name__", "")
            if not name.startswith(_KEPT_SETTINGS):
                self._refuse(f"sets an attribute of {name}", node)

    def _check_open(self, node: ast.Call) -> None:
        mode: ast.expr | None = node.args[1] if len(node.args) > 1 else None
        for word in node.keywords:
            if word.arg == "mode":
                mode = word.value
        if mode is None:
            return
        if not isinstance(mode, ast.Constant) or set(str(mode.value)) & set("wax+"):
            self._refuse("opens a file for writing", node)

    def _value(self, node: ast.expr) -> Any:
        """Look a dotted name up without running code of the person's."""
        if isinstance(node, ast.Name):
            return self._namespace.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            if isinstance(owner, ModuleType):
                return vars(owner).get(node.attr)
        return None

    def _full_name(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Attribute):
            value = self._value(node)
            if value is not None:
                return _name_of(value)
            owner = self._full_name(node.value)
            return None if owner is None else f"{owner}.{node.attr}"
        if not isinstance(node, ast.Name):
            return None
        if node.id in self._imported:
            return self._imported[node.id]
        if node.id in self._namespace:
            return _name_of(self._namespace[node.id])
        return f"builtins.{node.id}" if hasattr(builtins, node.id) else None

    def _refuse(self, reason: str, node: ast.AST) -> None:
        raise NotIsolated(reason, getattr(node, "lineno", None), self._where)


def _name_of(value: Any) -> str | None:
    if isinstance(value, ModuleType):
        return value.__name__
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str):
        return f"{module}.{name}"
    return None


def _by_module(name: str) -> str | None:
    parts = name.split(".")
    for count in range(1, len(parts)):
        reason = _MODULES.get(".".join(parts[:count]))
        if reason is not None:
            return reason
    return None


def _is_librarys_class(value: object) -> bool:
    return isinstance(value, type) and value.__module__ != "__main__"


def _own_functions(
    tree: ast.AST, namespace: Mapping[str, Any]
) -> Iterator[FunctionType]:
    """Find the person's functions that a tree names, and methods that it may call."""
    nodes = list(ast.walk(tree))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    for name in {node.id for node in nodes if isinstance(node, ast.Name)}:
        value = namespace.get(name)
        if isinstance(value, FunctionType):
            yield from _own((inspect.unwrap(value), value))
        elif value is not None:
            kind = value if isinstance(value, type) else type(value)
            yield from _own(_methods(kind, attributes))


def _methods(kind: type, names: set[str]) -> Iterator[FunctionType]:
    for owner in kind.__mro__:
        for name, value in vars(owner).items():
            # these are called without being named
            is_called = name in names or name == "forward" or name.startswith("__")
            if is_called and isinstance(value, FunctionType):
                yield value


def _own(functions: Iterable[Any]) -> Iterator[FunctionType]:
    for function in functions:
        # what unwraps to a built-in has no source
        if isinstance(function, FunctionType):
            if is_own_code(function.__code__.co_filename):
                yield function


def _source_of(function: FunctionType) -> ast.AST | None:
    try:
        source = inspect.getsource(function)
        return ast.parse(textwrap.dedent(source))
    except (OSError, SyntaxError, TypeError):
        # it was made by exec: the guard watches it as it runs
        return None


def _closure(function: FunctionType) -> dict[str, Any]:
    known = {}
    for name, cell in zip(
        function.__code__.co_freevars, function.__closure__ or (), strict=False
    ):
        try:
            known[name] = cell.cell_contents
        except ValueError:
            # not bound yet
            continue
    return known
