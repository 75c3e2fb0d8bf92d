"""Compiles Triton to PTX without a GPU; done in the jail.

Triton would have `ptxas` make machine code of the PTX, which is a program of its own,
and in the jail no program can be started: the driver does that in the trusted process.
As Triton's own launcher does, it makes one kernel for numbers and addresses that 16
divides, and another for those that it does not.
"""

from __future__ import annotations

import importlib
import linecache
import re
import sys
import types
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from warpbook_labs.compiler.jobs import Compiled, CompileTriton, Variant
from warpbook_labs.engines.interpreter.triton.running import (
    NoSource,
    load_triton,
    words_and_line,
)
from warpbook_labs.engines.interpreter.triton.watching import FILE
from warpbook_labs.errors import BadSource
from warpbook_labs.lab.texts import at_line
from warpbook_labs.lab.triton.source import read_kernels
from warpbook_labs.sandbox.work import Refused

_FILE = re.compile(r'^[ \t]*\.file\s+(\d+) "([^"\n]*)".*\n', re.M)
_LOCATION = re.compile(
    r"^[ \t]*\.loc\s+(\d+) (\d+) (\d+)"
    r"(?:, function_name [^,\n]+, inlined_at (\d+) (\d+) (\d+))?(.*)\n",
    re.M,
)
#: LLVM of Triton 3.6 says in a comment alone what was inlined where
_COMMENT = re.compile(rf"@\[ {PurePath(FILE).name}:(\d+):(\d+)")
#: LLVM counts the lines of assembly within as if they were the source's
_ASSEMBLY = re.compile(r"// begin inline asm\n.*?// end inline asm\n", re.S)
_DEBUG = re.compile(r"^[ \t]*\.section\s+\.debug_\w+\s*\{[^}]*\}\s*\n", re.M)
#: of the learner's file, in every text
_OWN = "1"
#: ends a text of which some lines are known
OWN_FILE = f'.file\t{_OWN} "{FILE}"\n'
#: functions that call one another, before something is wrong
_DEEPEST = 64

_Location = tuple[str, str, str]


def own_lines_alone(ptx: str) -> str:
    """Leave the lines of the learner's file alone, as those of a file 1."""
    ptx = _ASSEMBLY.sub(_first_location_alone, ptx)
    own = {number for number, name in _FILE.findall(ptx) if name == FILE}
    #: what is inlined within what is inlined follows it
    callers: dict[_Location, _Location] = {}

    def owned(of: re.Match[str]) -> str:
        place = (of[1], of[2], of[3])
        if of[4] is not None:
            callers[place] = (of[4], of[5], of[6])
        for _ in range(_DEEPEST):
            if place[0] in own or place not in callers:
                break
            place = callers[place]
        if place[0] not in own:
            said = _COMMENT.search(of[7])
            if said is None:
                return ""
            place = (_OWN, said[1], said[2])
        return f"\t.loc\t{_OWN} {place[1]} {place[2]}\n"

    return _DEBUG.sub("", _FILE.sub("", _LOCATION.sub(owned, ptx)))


def _first_location_alone(assembly: re.Match[str]) -> str:
    text = assembly[0]
    first = _LOCATION.search(text)
    if first is None:
        return text
    return text[: first.end()] + _LOCATION.sub("", text[first.end() :])


Job = CompileTriton

#: of PTX; every driver for CUDA 12.4 and later takes it
_PTX_VERSION = 84
#: more would have to be asked of the driver at each launch
_MOST_SHARED_BYTES = 48 << 10
_SHARED = re.compile(r"^[ \t]*\.extern \.shared .*global_smem\[\];.*$", re.M)
#: what comes before a kernel, and what it declares there
_FIRST = (".version", ".target", ".address_size")
_DECLARED = re.compile(r"^\.(?:extern \.func|global|shared)\b[^;]*;", re.M)
_GLOBAL = re.compile(r"^\.global [^;={]*?(\w+)\[", re.M)
#: a call as LLVM writes it, with what is given and where the result goes, if it is used
_CALL = re.compile(
    r"^[ \t]*\{ // callseq (\d+),"
    r"(?:(?!callseq)[^}])*?st\.param\.\w+\s+\[param0\], (\S+);"
    r"(?:(?!callseq)[^}])*?\b__nv_(\w+),\s*\(\s*param0\s*\);"
    r"(?:\s*ld\.param\.\w+\s+(\S+), \[retval0\];)?\s*\} // callseq \1$",
    re.M,
)
_CALLED = re.compile(r"\bcall\b[^;]*\b__nv_(\w+)")
_EXTERN_OF_LIBDEVICE = re.compile(r"^\.extern \.func[^;]*?\b__nv_(\w+)\b[^;]*;", re.M)
#: functions of libdevice that are one instruction or two, as fast mathematics has them
_INSTRUCTIONS = {
    "sqrtf": "sqrt.approx.ftz.f32 \t{result}, {given};",
    "rsqrtf": "rsqrt.approx.ftz.f32 \t{result}, {given};",
    "exp2f": "ex2.approx.ftz.f32 \t{result}, {given};",
    "log2f": "lg2.approx.ftz.f32 \t{result}, {given};",
    # times the natural logarithm of 2
    "logf": (
        "lg2.approx.ftz.f32 \t{result}, {given};\n"
        "\tmul.f32 \t{result}, {result}, 0f3F317218;"
    ),
}
_TYPES = {
    "float16": "fp16",
    "float32": "fp32",
    "float64": "fp64",
    "int8": "i8",
    "uint8": "u8",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "uint64": "u64",
    "int16": "i16",
    "uint16": "u16",
}
_OPTIONS = ("num_warps", "num_stages")
#: an error of Python's, as its compiler quotes it
_QUOTED = re.compile(r"^\w+Error\([\"'](.*)[\"'],?\)$", re.S)
_CHANGED = re.compile(
    r"Loop-carried variable (\w+) has initial type (.+) but is re-assigned to (.+) in"
)

_REHEARSAL = """
import triton
import triton.language as tl

@triton.jit
def rehearse(x, y, n, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i, mask=i < n, other=1.0)
    tl.atomic_add(y, tl.sum(tl.exp(v), axis=0) + tl.max(v, axis=0))
    for k in range(0, n):
        tl.store(x + i, tl.dot(v[:, None] + v[None, :], v[:, None] * v[None, :])[0, :])
"""


def prepare() -> None:
    """Load all that compiling needs, which no file can be opened for later."""
    load_triton(is_interpreted=False)
    importlib.import_module("triton.knobs").compilation.disable_line_info = False
    variant = Variant(
        "rehearse",
        "rehearse",
        ("*float32", "*float32", "int32"),
        (("N", 32), ("num_warps", 4), ("num_stages", 2)),
    )
    # this text is no kernel that can be compiled to its end everywhere, and need not be
    do(CompileTriton(_REHEARSAL, "sm_90", (variant,)))


def do(job: CompileTriton) -> Compiled | Refused:
    """Compile every kernel that is launched, one for each set of constants."""
    try:
        module = _loaded(job.source)
        texts = [
            _compiled(module, job.architecture, variant) for variant in job.variants
        ]
    except MemoryError:
        raise
    except (NoSource, BadSource) as problem:
        return Refused(str(problem), line=problem.line)
    except BaseException as problem:  # noqa: BLE001 - whatever a compiler raises
        words, line = _words(problem, job.source)
        return Refused(at_line(words, line), line=line)
    return Compiled(_joined(texts), "")


def _loaded(source: str) -> types.ModuleType:
    """Execute a source as a module whose lines Triton finds.

    Raises:
        BadSource: it says what is no Triton; nothing of it is executed.
    """
    read_kernels(source)
    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)
    module = types.ModuleType("kernel")
    module.__file__ = FILE
    # `inspect` believes in a file that it can't see where something could load it
    module.__loader__ = linecache  # type: ignore[assignment]
    sys.modules["kernel"] = module
    exec(compile(source, FILE, "exec"), module.__dict__)
    return module


def _joined(texts: Sequence[str]) -> str:
    """Make one text of several: what they declare first, each thing once."""
    begins = [text.index(".visible") for text in texts]
    heads = [text[:begin] for text, begin in zip(texts, begins, strict=True)]
    declared = [name for head in heads for name in _DECLARED.findall(head)]
    bodies = [text[begin:] for text, begin in zip(texts, begins, strict=True)]
    lines = heads[0].splitlines()
    first = [line for line in lines if line.startswith(_FIRST)]
    return "\n".join([*first, *dict.fromkeys(declared), *bodies, OWN_FILE])


def _without_calls(ptx: str) -> str:
    """Have instructions in place of the functions of libdevice that are so few."""

    def instruction(call: re.Match[str]) -> str:
        given, name, result = call[2], call[3], call[4]
        if result is None:
            # LLVM does not know the function, so it keeps a call that nothing needs
            return ""
        known = _INSTRUCTIONS.get(name)
        if known is None:
            return call[0]
        return "\t" + known.format(result=result, given=given)

    ptx = _CALL.sub(instruction, ptx)
    called = set(_CALLED.findall(ptx))
    return _EXTERN_OF_LIBDEVICE.sub(
        lambda extern: extern[0] if extern[1] in called else "", ptx
    )


def _compiled(module: Any, architecture: str, variant: Variant) -> str:
    compiler = importlib.import_module("triton.compiler.compiler")
    ir = importlib.import_module("triton._C.libtriton").ir
    target = importlib.import_module("triton.backends.compiler").GPUTarget(
        "cuda", int(architecture.removeprefix("sm_")), 32
    )
    kernel = getattr(module, variant.kernel)
    constants = dict(variant.constants)
    options = {name: constants.pop(name) for name in _OPTIONS if name in constants}
    types = iter(variant.types)
    signature = {
        name: "constexpr" if name in constants else _type(next(types))
        for name in kernel.arg_names
    }
    # what 16 divides can be loaded 16 bytes at a time
    free = [
        place for place, name in enumerate(kernel.arg_names) if name not in constants
    ]
    even = {(free[name],): [["tt.divisibility", 16]] for name in variant.even}
    source = compiler.ASTSource(
        fn=kernel, signature=signature, constexprs=constants, attrs=even
    )
    backend = compiler.make_backend(target)
    chosen = backend.parse_options({**options, "ptx_version": _PTX_VERSION})
    # NVIDIA's library of functions is a file, and none can be read here
    object.__setattr__(chosen, "extern_libs", ())
    stages: dict[str, Any] = {}
    backend.add_stages(stages, chosen, source.language)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    code = source.make_ir(
        target,
        chosen,
        backend.get_codegen_implementation(chosen),
        backend.get_module_map(),
        context,
    )
    metadata: dict[str, Any] = {"target": target, **chosen.__dict__}
    for name, stage in stages.items():
        if name == "cubin":
            break
        code = stage(code, metadata)
    if metadata.get("global_scratch_size"):
        raise NoSource(
            f"`{variant.kernel}` makes tensor descriptors, which can't be had here, "
            "nor serve rows that 16 bytes don't divide: use pointers and masks."
        )
    return _named(own_lines_alone(str(code)), variant, int(metadata["shared"]))


def _type(text: str) -> str:
    pointer = "*" if text.startswith("*") else ""
    return pointer + _TYPES[text.removeprefix("*")]


def _named(ptx: str, variant: Variant, shared_bytes: int) -> str:
    """Give a kernel its own name and shared memory, so that several fit together."""
    if shared_bytes > _MOST_SHARED_BYTES:
        raise NoSource(
            f"`{variant.kernel}` wants {shared_bytes:,} bytes of shared memory; "
            f"{_MOST_SHARED_BYTES:,} can be had here: make its blocks smaller, "
            "or have fewer num_stages."
        )
    ptx = _without_calls(ptx)
    missing = _CALLED.search(ptx)
    if missing is not None:
        raise NoSource(
            f"`{variant.kernel}` needs {missing[1]}() of libdevice, which is not "
            "available here: use other functions of `tl`."
        )
    own = f"smem_{variant.entry}"
    if _SHARED.search(ptx):
        declared = f".shared .align 1024 .b8 {own}[{max(shared_bytes, 16)}];"
        ptx = _SHARED.sub(declared, ptx)
    ptx = ptx.replace("global_smem", own)
    for symbol in _GLOBAL.findall(ptx):
        ptx = re.sub(rf"\b{symbol}\b", f"{symbol}_{variant.entry}", ptx)
    name = re.escape(variant.kernel)
    ptx = re.sub(rf"(\.entry\s+){name}\b", rf"\g<1>{variant.entry}", ptx)
    return re.sub(rf"\b{name}_param_", f"{variant.entry}_param_", ptx)


def _words(problem: BaseException, source: str) -> tuple[str, int | None]:
    """Tell what the compiler says, without the picture of the line that it draws."""
    inner, line = problem, None
    while True:
        # of the innermost that is the learner's: within it is what Triton brings
        node, kernel = getattr(inner, "node", None), getattr(inner, "src", None)
        start = source.find(kernel) if kernel else -1
        if node is not None and start >= 0:
            # lines are counted from the start of its kernel
            line = source.count("\n", 0, start) + node.lineno
        if inner.__cause__ is None:
            break
        inner = inner.__cause__
    words = getattr(inner, "error_message", None) or str(inner) or type(inner).__name__
    if line is None:
        return words_and_line(problem)
    return _plain(words)[:400], line


def _plain(words: str) -> str:
    """Tell what its compiler quotes of an error, and what to do where it doesn't."""
    quoted = _QUOTED.match(words)
    words = quoted[1] if quoted else words
    changed = _CHANGED.match(words)
    if changed is None:
        return words
    name, before, after = changed.groups()
    return (
        f"`{name}` is {_shown(before)} before the loop, and {_shown(after)} in it: it "
        "must have one dtype and one shape before the loop and in it."
    )


def _shown(kind: str) -> str:
    """Tell a type without marks of Python's: of a block its dtype, then its sides."""
    block = re.fullmatch(r"<\[(.*)\], (.*)>", kind)
    if block is None:
        return kind
    sides = block[1].replace("'", "")
    return f"{block[2]}[{sides}]"
