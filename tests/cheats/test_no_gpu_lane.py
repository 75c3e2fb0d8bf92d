"""Sources that try to cheat, break or outlast the lane without a GPU.

Files, the network and other processes are tried in tests/labs/sandbox. Here each source
goes through the whole of a check, and must end in a clear status that leaks nothing.
"""

from __future__ import annotations

import msgspec
import pytest

from tests.cheats.between import listen
from tests.lab_checks import check
from warpbook_labs.cases.sampling import DrawnCase, hidden_cases, public_cases
from warpbook_labs.course.session import find
from warpbook_labs.engines.interpreter import checking
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.results.check import CheckResult
from warpbook_labs.sandbox.work import Limits

SEED = 987_654_321_987
#: what a result may weigh, however much the kernel says
MOST_BYTES = 1_000_000

WHOLE = "add_relu<<<ceil_div(n, 256), 256>>>(x, y, out, n)"
RIGHT = "float sum = x[i] + y[i]; out[i] = sum < 0 ? 0 : sum;"


def source(body: str = RIGHT, rule: str = WHOLE, before: str = "") -> str:
    return f"""// launch: {rule}
{before}
extern "C" __global__
void add_relu(const float* x, const float* y, float* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {{ {body} }}
}}
"""


def rule(numbers: str, arguments: str = "x, y, out, n") -> str:
    return source(rule=f"add_relu<<<{numbers}>>>({arguments})")


@pytest.fixture(scope="module")
def lab() -> LoadedLab:
    return find("vector-add")


@pytest.fixture(scope="module")
def cases(lab: LoadedLab) -> list[DrawnCase]:
    return public_cases(lab.lab)[1:2] + hidden_cases(lab.lab, SEED)[:3]


@pytest.fixture(scope="module")
def ended(lab: LoadedLab, cases: list[DrawnCase]):
    """Check a source, and see to what holds for every result."""

    def run(text: str, limits: Limits | None = None) -> CheckResult:
        result = check(lab, text, cases, limits or Limits())
        encoded = msgspec.json.encode(result)
        assert len(encoded) < MOST_BYTES
        for secret in (str(SEED), *(str(case.seed) for case in cases if case.seed > 9)):
            assert secret.encode() not in encoded
        assert b"Traceback" not in encoded and b"warpbook_labs/" not in encoded
        return result

    return run


def words(result: CheckResult) -> str:
    failed = [case.message for case in result.cases if not case.passed]
    return " ".join([result.message, result.log, *failed])


def test_honest_sources_pass_as_controls(ended) -> None:
    assert ended(source()).status == "passed"
    assert ended(source(before="// \u202e \x1b[2J")).status == "passed"
    assert ended(source().replace("\n", "\r\n")).status == "passed"


#: wrong whatever the values are, or against the rules
DISHONEST = {
    "writes nothing and hopes for what lies there": ("", "is nothing; expected"),
    "reads the output for the answer": (
        "out[i] = out[n - 1 - i];",
        "uninitialised read",
    ),
    "goes over the red zone into another buffer": (
        "out[i] = *(const float*)((const char*)x + 8192 * (i + 1));",
        "elements are wrong|out of bounds",
    ),
    "searches all memory beyond a buffer": (
        "float s = 0; for (int k = 0; k < 100000; k++) s += x[n + k]; out[i] = s;",
        "0 bytes past the end of `x`",
    ),
    "searches all memory before a buffer": (
        "out[i] = x[-1000 - i];",
        "before the start of `x`",
    ),
    "makes up an address": ("out[i] = x[1ll << 40];", "where there is nothing"),
    "follows no pointer": ("out[i] = *(float*)16;", "where there is nothing"),
    "reads shared memory that nobody wrote": (
        "extern __shared__ float left[]; out[i] = left[i % 32];",
        "uninitialised read|out of bounds",
    ),
    "spoils the inputs before it reads them": (
        f"((float*)x)[i] = 0; ((float*)y)[i] = 0; {RIGHT}",
        "It writes `x`, which is an input",
    ),
    "leaves before it is done": ('asm volatile("exit;"); out[i] = 0;', "is nothing"),
    "traps": ('asm volatile("trap;");', "gave up"),
    "answers for the case that is shown": (
        f"if (n == 1000) {{ {RIGHT} }} else out[i] = 0;",
        "is 0; expected",
    ),
}


@pytest.mark.parametrize("name", DISHONEST)
def test_a_kernel_that_does_not_compute_fails(name: str, ended) -> None:
    body, why = DISHONEST[name]
    result = ended(source(body))
    assert result.status == "failed" and result.right < result.of
    assert any(words_wanted in words(result) for words_wanted in why.split("|")), words(
        result
    )


def test_nothing_is_kept_from_one_case_to_the_next(ended) -> None:
    remember = source(
        'if (i == 0) { printf("%d", seen); seen = n; }' + RIGHT,
        before="__device__ int seen;",
    )
    result = ended(remember)
    assert result.status == "passed"
    assert [case.printed for case in result.cases] == ["0", "", "", ""]


def test_what_is_right_never_enters_the_process_of_the_kernel(
    lab: LoadedLab, cases: list[DrawnCase], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    listen(monkeypatch, lambda job, _: sent.append(msgspec.msgpack.encode(job)))
    result = check(lab, lab.reference, cases)
    assert result.status == "passed" and len(sent) >= 2
    prepared = checking.Prepared(
        lab, checking.rule_of(lab.lab, lab.reference), cases[0]
    )
    right = lab.cases.expected(prepared.given, cases[0].sizes)["out"].tobytes()
    assert any(prepared.given["x"].tobytes() in job for job in sent)
    for job in sent:
        assert right not in job and str(SEED).encode() not in job


#: launch rules made to break who follows them
RULES = {
    "2^62 blocks": rule("4611686018427387904, 256"),
    "2^186 blocks": rule(f"({', '.join(['4611686018427387904'] * 3)}), 256"),
    "a bomb of powers": rule("9**9**9**9, 256"),
    "a bomb of shifts": rule("1 << 99999999, 256"),
    "a bomb of digits": rule(f"{'9' * 900}, 256"),
    "deep brackets": rule(f"{'(' * 400}1{')' * 400}, 256"),
    "an attribute": rule("n.__class__, 256"),
    "no block": rule("1, 0"),
    "fewer than no blocks": rule("-1, 32"),
    "less than no shared memory": rule("1, 32, -100000"),
    "endless shared memory": rule("1, 32, 4611686018427387904"),
    "four sides": rule("(1, 1, 1, 1), 32"),
    "no numbers": rule(""),
    "no arguments": rule("1, 32", ""),
    "300 arguments": rule("1, 32", ", ".join(["x"] * 300)),
    "a number for a buffer": rule("1, 32", "7, 7, 7, n"),
    "a buffer for a number": rule("1, 32", "x, y, out, out"),
    "a number that does not fit": rule("1, 32", "x, y, out, n * 4611686018427387"),
    "a buffer that is not there": rule("1, 32", "x, y, answer, n"),
    "a kernel that is not its own": source(rule="memcpy<<<1, 32>>>(x, y, out, n)"),
    "a name of Python": source(rule="__import__<<<1, 32>>>(x, y, out, n)"),
    "endless scratch memory": "// scratch: s int64[4611686018427387904]\n" + source(),
    "less than no scratch memory": "// scratch: s int8[-1]\n" + source(),
    "scratch memory in place of an input": "// scratch: x float32[n]\n" + source(),
    "thousands of scratch buffers": "// scratch: s int8[1]\n" * 5000 + source(),
    "thousands of launches": f"// launch: {WHOLE}\n" * 3000 + source(),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_that_cant_be_followed_is_told(name: str, ended) -> None:
    result = ended(RULES[name])
    assert result.status in ("bad launch rule", "failed") and result.right == 0
    assert "make sense of the kernel" not in words(result)


def test_64_launches_of_a_million_blocks_end_in_time(ended) -> None:
    many = "// launch: add_relu<<<1000000, 64>>>(x, y, out, n)\n" * 63
    # not by the clock, which goes on for a compiler on a busy machine
    result = ended(many + source(), Limits(processor_s=3))
    assert result.status == "failed" and "has run longer than" in words(result)


ENDLESS = {
    "a loop": "for (;;) out[i] += 1;",
    "an empty loop": "for (;;);",
    "waiting for nobody": "while (((volatile float*)out)[n - 1] != 5);",
    "printing": 'for (int k = 0; k < 1 << 30; k++) printf("%0100d%0100d", k, k);',
    "an instruction that ends nowhere": 'asm volatile("HERE: bra HERE;");',
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_never_ends_is_ended(name: str, ended) -> None:
    result = ended(source(ENDLESS[name]), Limits(processor_s=2))
    assert result.status in ("stopped", "failed", "timed out") and result.right == 0


COMPILERS = {
    "a bomb of macros": (
        source(
            "B(B(out[i] += 1;))",
            before="#define A(x) x x x x x x x x\n#define B(x) A(A(A(A(x))))",
        )
    ),
    "a bomb of templates": source(
        "F<1>::u q;",
        before="template<int N> struct F { typedef F<N+1> t; typedef t::u u; };",
    ),
    "a source that includes itself": source(before="#include __FILE__"),
    "a file of the system": source(before='#include "/etc/passwd"'),
    "a flood of errors": source("zz; " * 30_000),
    "a NUL": source() + "\0",
    "half a character": source() + "// \udcff",
    "300 kB": source() + "/" * 300_000,
    "nothing": "",
}


@pytest.mark.parametrize("name", COMPILERS)
def test_what_no_compiler_should_meet_ends_with_a_reason(name: str, ended) -> None:
    result = ended(COMPILERS[name], Limits(processor_s=3))
    assert result.status == "compile error"
    assert len(result.log) <= 20_000 and "root:" not in result.log


#: PTX that no compiler would write
ASSEMBLY = {
    "an unknown instruction": 'asm volatile("frobnicate.u32 %%r1, 3;");',
    "too few operands": 'asm volatile("add.u32 %r1, %r2;");',
    "an unknown register": 'asm volatile("mov.u32 %nonsense, 1;");',
    "a jump to nowhere": 'asm volatile("bra NOWHERE;");',
    "braces": 'asm volatile("\\"{{{;;;");',
    "a kernel in the kernel": 'asm volatile("} .visible .entry foo() { ret;");',
    "10 GB of a thread's own": 'asm volatile(".local .align 4 .b8 q[9999999999];");',
    "2 billion registers": 'asm volatile(".reg .b32 q<2000000000>;");',
    "a clock": "out[i] = clock64();",
    "memory on demand": "out[i] = *(float*)malloc(1 << 30);",
}


@pytest.mark.parametrize("name", ASSEMBLY)
def test_assembly_that_is_not_known_is_told(name: str, ended) -> None:
    result = ended(source(ASSEMBLY[name]), Limits(processor_s=3))
    states = ("failed", "stopped", "timed out", "unsupported")
    assert result.status in states and result.right == 0
    assert "crashed" not in result.message


def test_what_is_printed_is_bounded_and_of_hidden_cases_not_told(ended) -> None:
    much = source('for (int k = 0; k < 50; k++) printf("%0100d\\n", n);' + RIGHT)
    result = ended(much)
    assert result.status == "passed"
    assert len(result.cases[0].printed) == 4_000
    assert not any(case.printed for case in result.cases if case.is_hidden)


def test_a_format_that_lies_reads_nothing_of_the_grader(ended) -> None:
    lying = source('printf("%s %s %*d %n \\x1b[2J", (char*)1, x, n);' + RIGHT)
    result = ended(lying)
    assert result.status in ("passed", "failed")
    assert "root" not in result.cases[0].printed
