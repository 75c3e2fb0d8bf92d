"""Arithmetic of serving libraries' operators, and what limits them on any GPU."""

from pathlib import Path

import pytest

from tests.profiler.trace.written import call, kernel, report_of, trace
from warpbook_profiler.events.columns import Operands
from warpbook_profiler.facts.flops import model

BF16, FP8, BYTE = "c10::BFloat16", "c10::Float8_e4m3fn", "unsigned char"
FP4 = "c10::Float4_e2m1fn_x2"
#: 64 tokens of 512 numbers, 8 experts of 256
TOKENS, GATE_UP, DOWN, ASKED = (64, 512), (8, 512, 512), (8, 512, 256), (64, 2)
OF_EXPERTS = 2 * 64 * 2 * (512 * 512 + 512 * 256)


@pytest.mark.parametrize(
    ("name", "dims", "dtypes", "flops", "dtype"),
    [
        (
            "vllm::rocm_aiter_fused_moe",
            (TOKENS, GATE_UP, DOWN, ASKED, ASKED),
            (BF16, BF16, BF16, "float", "int"),
            OF_EXPERTS,
            BF16,
        ),
        (
            "sglang::inplace_fused_experts",
            (TOKENS, GATE_UP, DOWN, ASKED, ASKED),
            (BF16, FP8, FP8, "float", "int"),
            OF_EXPERTS,
            FP8,
        ),
        (
            "vllm::fused_marlin_moe",
            (TOKENS, (8, 512, 256), (8, 512, 128), ASKED),
            (BF16, BYTE, BYTE, "float"),
            OF_EXPERTS,
            BF16,
        ),
        ("aten::_scaled_mm", ((32, 64), (64, 16)), (FP4, FP4), 2 * 32 * 128 * 16, FP4),
        (
            "aten::_grouped_mm",
            ((32, 64), (4, 64, 16), (4,)),
            (BF16, BF16, "int"),
            2 * 32 * 64 * 16,
            BF16,
        ),
        (
            "_C::cutlass_scaled_fp4_mm",
            ((32, 16), (32, 64), (16, 64), (128, 8)),
            (BF16, BYTE, BYTE, FP8),
            2 * 32 * 128 * 16,
            FP4,
        ),
        (
            "aiter::gemm_a8w8_blockscale",
            ((32, 128), (16, 128), (32, 1), (1, 1)),
            (FP8, FP8, "float", "float"),
            2 * 32 * 128 * 16,
            FP8,
        ),
        # the latent attention of a prompt: keys are longer than values
        (
            "flash_attn::_flash_attn_forward",
            ((2, 64, 16, 192), (2, 64, 16, 192), (2, 64, 16, 128)),
            (BF16, BF16, BF16),
            2 * 2 * 16 * 64 * 64 * (192 + 128),
            BF16,
        ),
    ],
)
def test_the_flops_of_a_librarys_operator_follow_from_its_operands(
    name: str,
    dims: tuple[tuple[int, ...], ...],
    dtypes: tuple[str, ...],
    flops: int,
    dtype: str,
) -> None:
    work = model(name, Operands(dims, dtypes, ("", "", "", "0", "0.1", "False")))
    assert work is not None
    assert (work.flops, work.dtype) == (flops, dtype)
    for hostile in (dims[:1], ((0, 0), (0, 0, 0), (0, 0, 0), (0, 0)), ((2**40,) * 9,)):
        assert model(name, Operands(hostile, dtypes)) is None or hostile[0] == (0, 0)


def test_few_tokens_read_the_weights_of_the_experts_that_they_need() -> None:
    def read(tokens: int) -> int:
        dims = ((tokens, 512), GATE_UP, DOWN, (tokens, 1))
        work = model("vllm::fused_moe", Operands(dims, (BF16, BF16, BF16, "float")))
        assert work is not None and work.size_bytes is not None
        return work.size_bytes - 2 * 2 * tokens * 512

    of_one = 2 * (512 * 512 + 512 * 256)
    assert read(1) == of_one
    assert 1.5 * of_one < read(2) < 2 * of_one
    assert 7.9 * of_one < read(64) <= 8 * of_one


@pytest.mark.parametrize(
    ("name", "dims", "dtype", "kind"),
    [
        ("vllm::fused_moe", ((4, 512), GATE_UP, DOWN, (4, 2)), "BFloat16", "memory"),
        (
            "vllm::fused_moe",
            ((65536, 4096), (8, 4096, 4096), (8, 4096, 2048), (65536, 2)),
            "torch.bfloat16",
            "compute",
        ),
        ("aten::mm", ((8192, 8192), (8192, 8)), "Float", "memory"),
    ],
)
def test_what_limits_an_operator_everywhere_limits_it_on_a_gpu_that_has_no_name(
    name: str,
    dims: tuple[tuple[int, ...], ...],
    dtype: str,
    kind: str,
    tmp_path: Path,
) -> None:
    operator = call(0, 100.0, cat="cpu_op", name=name, dur=400.0)
    # it has no id: that the launch lies within it is all that links them
    operator["args"] = {"Input Dims": dims, "Input type": [dtype] * len(dims)}
    work = kernel(9, 115.0, name="fused_moe_kernel", dur=380.0)
    content = trace(operator, call(9, 110.0), work, deviceProperties=[])
    trace_report = report_of(tmp_path, content)
    assert trace_report.verdict.kind == f"{kind}-bound"
    assert trace_report.metrics.flops


@pytest.mark.parametrize(
    ("late_us", "kind"), [(30.0, "compute-bound"), (90.0, "unknown")]
)
def test_an_end_that_is_late_by_little_of_the_time_contradicts_nothing(
    late_us: float, kind: str, tmp_path: Path
) -> None:
    wait = call(10, 1500.0, name="cudaDeviceSynchronize", dur=700.0 - late_us)
    work = kernel(9, 1200.0, name="ampere_sgemm_128x64_tn", dur=1000.0)
    content = trace(call(8, 100.0), kernel(8, 110.0), call(9, 1190.0), work, wait)
    assert report_of(tmp_path, content).verdict.kind == kind
