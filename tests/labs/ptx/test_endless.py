"""Loops that never end are found at once; slow ones are left alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.labs.ptx.kernels import machine
from warpbook_labs.results.findings import Report

N = 1000
#: far fewer steps than an endless loop would get, and enough for what ends
STEPS = 300_000


def ran(body: str, threads: int = 32, n: int = N) -> Report:
    """Run a kernel whose body begins on line 3."""
    head = 'extern "C" __global__ void f(int* x, int n, int step)'
    gpu = machine(f"\n{head} {{\n{body}\n}}")
    buffer = gpu.put("x", np.arange(1, n + 1, dtype=np.int32))
    arguments = [buffer, n, 0]
    return gpu.run("f", (1, 1, 1), (threads, 1, 1), arguments, max_steps=STEPS)


NO_WAY_OUT = {
    "no condition": "int s = 0;\nwhile (true) { s += x[0]; x[1] = s; }",
    "always true for an unsigned number": (
        "for (unsigned i = n - 1; i >= 0; --i) x[i % n] = 1;"
    ),
    "for some threads": (
        "if (threadIdx.x == 5)\n  while (true) x[5] += 1;\nelse x[threadIdx.x] = 0;"
    ),
}
NO_CHANGE = {
    "a step of 0": "for (int i = threadIdx.x; i < n; i += step) x[i] += 1;",
    "a step that is 0 for one thread": (
        "for (int i = threadIdx.x; i < n; i += threadIdx.x) x[i] += 1;"
    ),
    "an increment that is forgotten on one way": (
        "int i = threadIdx.x;\nwhile (i < n) {\n  if (i % 7 != 3) i += 32;\n"
        "  else x[i] = 5;\n}"
    ),
    "an inner one": (
        "for (int i = 0; i < 4; ++i)\n"
        "  for (int j = i; j < n; j += step + (i < 2)) x[j] = i;"
    ),
    "a product that stays 0": (
        "for (int stride = step; stride < n; stride *= 2) x[stride] += 1;"
    ),
    "a half that is rounded": (
        "int low = 0, high = n;\nwhile (low < high) {\n"
        "  int middle = (low + high) / 2;\n"
        "  if (middle < 300) low = middle; else high = middle;\n}\nx[0] = low;"
    ),
}


@pytest.mark.parametrize("name", NO_WAY_OUT)
def test_a_loop_without_a_way_out_is_found_when_it_is_entered(name: str) -> None:
    report = ran(NO_WAY_OUT[name])
    [finding] = [
        one_finding for one_finding in report.findings if one_finding.kind == "too long"
    ]
    assert "it has no way out" in finding.message and finding.line in (3, 4)
    assert report.stopped and report.counts.warp_instructions < 200


@pytest.mark.parametrize("name", NO_CHANGE)
def test_a_loop_whose_end_nothing_brings_nearer_is_found(name: str) -> None:
    report = ran(NO_CHANGE[name])
    [finding] = [
        one_finding for one_finding in report.findings if one_finding.kind == "too long"
    ]
    assert "nothing that its end depends on changes" in finding.message
    assert finding.line in (3, 4, 5) and report.stopped


ENDS = {
    "one thread for all": "if (!threadIdx.x) for (int i = 0; i < n; ++i) x[i] = i;",
    "the same inner loop again and again": (
        "for (int i = 0; i < 500; ++i)\n  for (int j = 0; j < 3; ++j) x[j] = j;"
    ),
    "an inner loop that begins alike, under a branch": (
        "for (int i = 0; i < 400; ++i) {\n  int j = 0;\n"
        "  if (i % 3) do { x[j] = j; } while (++j < 4);\n}"
    ),
    "what is read ends it": "int i = 0;\nwhile (x[i] < n) { ++i; }\nx[0] = i;",
    "what it writes ends it": "while (x[threadIdx.x] < 700) x[threadIdx.x] += 1;",
    "a search by halves": (
        "int low = 0, high = n;\nwhile (low < high) {\n"
        "  int middle = (low + high) / 2;\n"
        "  if (x[middle] <= 300) low = middle + 1; else high = middle;\n}\nx[0] = low;"
    ),
    "another number each round, by a division": (
        "unsigned v = 1;\nfor (int i = 0; i < 600; ++i) v = v * 1664525u + 1013904223u;"
        "\nwhile (v != 1) v = v > 1 ? v / 2 : 1;\nx[0] = v;"
    ),
    "a break in the middle": (
        "for (int i = 0; ; ++i) {\n  if (i == 900) break;\n  x[i] = i;\n}"
    ),
    "a return in the middle": (
        "for (int i = 0; ; ++i) {\n  if (i == 900) return;\n  x[i] = i;\n}"
    ),
    "another lane ends it": (
        "for (int i = threadIdx.x; __any_sync(~0u, i < 700); i += 2)\n"
        "  if (i < 700) x[i] = 0;"
    ),
    "a condition of before jumps over what counts": (
        "__shared__ int misses[32];\nmisses[threadIdx.x] = 0;\n"
        "unsigned found = 0, i = 0, strict = n;\nwhile (found < 3) {\n"
        "  unsigned rest = (found + 7) % strict;\n"
        "  bool early = (rest < 100) & (found * 3 < strict);\n"
        "  misses[0] += early;\n  unsigned v = x[i++ % n];\n"
        "  if (v <= 700) { misses[threadIdx.x] += 1; if (early) continue; }\n"
        "  found++;\n}\nx[0] = i + misses[0];"
    ),
    "a flag of another thread": (
        "volatile int* flag = x;\nif (threadIdx.x < 32) {\n"
        "  while (*flag == 1) { __nanosleep(10); }\n} else {\n"
        "  int s = 0;\n  for (int i = 1; i < n; ++i) s += i;\n  *flag = s;\n}"
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_loop_that_ends_is_left_alone(name: str) -> None:
    threads = 64 if "another thread" in name else 32
    report = ran(ENDS[name], threads)
    assert [finding for finding in report.findings if finding.kind == "too long"] == []
    assert not report.stopped


def test_what_runs_out_of_time_says_in_which_loop() -> None:
    report = ran(
        "unsigned v = n;\nwhile (v != 7)\n  v = v * 1664525u + 1013904223u;\nx[0] = v;"
    )
    [finding] = [
        one_finding for one_finding in report.findings if one_finding.kind == "too long"
    ]
    assert "rounds of the loop of lines 4 to 5 among it" in finding.message
    assert "or one of its loops never ends." in finding.message
