"""The Triton that can be checked without a GPU: all that a kernel may name, as data.

What is not here is refused. Names of functions may be called and nothing else, so that
no kernel holds a part of Triton itself.
"""

from __future__ import annotations

#: written `tl.int32`; values like numbers
TYPES = frozenset(
    "int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float8e4nv float8e5 "
    "float16 bfloat16 float32 float64 void".split()
)
#: also below `tl.math`
_MATH = frozenset(
    "abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn "
    "umulhi".split()
)
#: written `tl.load(...)`, as Triton's reference of `triton.language` lists them
FUNCTIONS = _MATH | frozenset(
    "add arange argmax argmin associative_scan assume atomic_add atomic_and atomic_cas "
    "atomic_max atomic_min atomic_or atomic_xchg atomic_xor broadcast broadcast_to "
    "cast cat cdiv clamp constexpr cumprod cumsum debug_barrier device_assert "
    "device_print dot dot_scaled expand_dims flip full gather histogram "
    "inline_asm_elementwise interleave join load load_tensor_descriptor "
    "make_tensor_descriptor max max_constancy max_contiguous maximum min minimum mul "
    "multiple_of num_programs permute pointer_type program_id rand rand4x randint "
    "randint4x randn randn4x ravel reduce reduce_or reshape sigmoid softmax sort split "
    "squeeze static_assert static_print store store_tensor_descriptor sub sum "
    "swizzle2d topk trans unsqueeze view where xor_sum zeros zeros_like".split()
)
#: what a loop goes over: `tl.range`, and Python's own
RANGES = frozenset({"range", "tl.range", "tl.static_range"})
#: Python's own, which Triton has in a kernel, too
BUILTINS = frozenset({"float", "int", "len", "max", "min", "print"})
#: of `triton`
_HOST_FUNCTIONS = frozenset({"cdiv", "next_power_of_2"})
#: what a kernel may call by a name with a point in it
CALLED = frozenset(
    {
        *(f"tl.{name}" for name in FUNCTIONS),
        *(f"tl.math.{name}" for name in _MATH),
        *(f"triton.{name}" for name in _HOST_FUNCTIONS),
    }
)
#: and what it may have as a value
VALUES = frozenset(
    {
        *(f"tl.{name}" for name in TYPES),
        "tl.PropagateNan.ALL",
        "tl.PropagateNan.NONE",
        "tl.TRITON_MAX_TENSOR_NUMEL",
    }
)
#: of a tensor, a type or a descriptor
ATTRIBUTES = frozenset(
    "T block_shape dtype element_ty primitive_bitwidth scalar shape type value".split()
)
METHODS = frozenset(
    "abs argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max "
    "atomic_min atomic_or atomic_xchg atomic_xor broadcast_to cast cdiv ceil cos "
    "cumprod cumsum erf exp exp2 expand_dims flip floor gather histogram is_bf16 "
    "is_block is_floating is_fp16 is_fp32 is_fp64 is_int is_int1 is_int16 is_int32 "
    "is_int64 is_int8 is_int_signed is_int_unsigned is_ptr is_uint16 is_uint32 "
    "is_uint64 is_uint8 item load log log2 logical_and logical_or max min permute "
    "ravel reduce reduce_or reshape rsqrt sigmoid sin softmax sort split sqrt sqrt_rn "
    "store sum to trans view xor_sum".split()
)
#: what may stand behind a parameter and behind `->`
ANNOTATIONS = frozenset(
    {
        *("tl.constexpr", "tl.tensor", "tl.dtype", "bool", "float", "int"),
        *(f"tl.{name}" for name in TYPES),
    }
)
#: what may stand within `@triton.jit(...)`, none of which changes what is computed
JIT_OPTIONS = frozenset(
    "debug do_not_specialize do_not_specialize_on_alignment noinline".split()
)
#: a GPU knows these, and what to write in their place where there may be none
ELSEWHERE = {
    "tl.make_block_ptr": "use pointers and masks; Triton 3.9 has no block pointers",
    "triton.heuristics": "name the numbers of a launch in the launch rule",
    **dict.fromkeys(("tl.extra", "triton.language.extra"), "use the functions of `tl`"),
    **dict.fromkeys(
        (
            *("tl.advance", "tl.map_elementwise", "tl.atomic_load", "tl.atomic_store"),
            *("tl.atomic_poll", "tl.philox", "tl.pair_uniform_to_normal"),
            *("tl.uint_to_uniform_float", "tl.bitonic_merge", "tl.slice"),
        ),
        "Triton's interpreter has no such function",
    ),
    **dict.fromkeys(
        (
            *("tl.const", "tl.expect_zero", "tl.target_info", "tl.tuple"),
            *("tl.float8e4b15", "tl.float8e4b8", "tl.float8e5b16", "tl.to_tensor"),
        ),
        "write it without",
    ),
}
