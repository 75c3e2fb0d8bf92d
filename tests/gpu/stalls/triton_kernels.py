"""Each kernel has one fault; its line says so, with the reasons that may lead there."""

# mypy: disallow-untyped-decorators=False

import triton
import triton.language as tl


@triton.jit
def strided(x, y, rounds, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for r in range(rounds):
        v = tl.load(x + ((i * 4099 + r * 977) & 0x1FFFFFF))  # planted: lg_throttle
        total += v * 1.5
    tl.store(y + i, total)


@triton.jit
def few_addresses(x, y, rounds, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    seen = tl.zeros((BLOCK,), tl.int32)
    for r in range(rounds):
        seen += tl.atomic_add(x + i % 4, r)  # planted: long_scoreboard lg_throttle
    tl.store(y + i, seen)


@triton.jit
def special_functions(x, y, rounds, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    for _ in range(rounds):
        v = tl.exp2(tl.exp2(-v) - 2.0)  # planted: mio_throttle short_scoreboard
    tl.store(y + i, v)


@triton.jit
def gather(x, places, y, rounds, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    at = tl.load(places + i)
    for r in range(rounds):
        v = tl.load(x + (at * (2 * r + 1) & 0x1FFFFFF))  # planted: lg_throttle
        total += v
    tl.store(y + i, total)


@triton.jit
def masked(x, keep, y, rounds, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for r in range(rounds):
        at = (i + r * 65536) & 0xFFFFFF
        kept = tl.load(keep + at)
        total += tl.load(x + at, mask=kept > 0, other=0.0)  # planted: long_scoreboard
    tl.store(y + i, total)


@triton.jit
def few_warps(following, y, rounds, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for _ in range(rounds):
        i = tl.load(following + i)  # planted: long_scoreboard
    tl.store(y + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), i)
