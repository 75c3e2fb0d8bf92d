"""A launch that no GPU does with the lab's large sizes is refused without one."""

from __future__ import annotations

import pytest

from tests.lab_checks import check
from warpbook_labs.cases.launch_limits import refusal
from warpbook_labs.course.session import find

KERNEL = """// launch: add_relu<<<%s, 128>>>(x, y, out, n)
extern "C" __global__ void add_relu(const float* x, const float* y, float* out, int n) {
    int i = (blockIdx.y * gridDim.x + blockIdx.x) * 128 + threadIdx.x;
    if (i < n) {
        float sum = x[i] + y[i];
        out[i] = sum < 0 ? 0 : sum;
    }
}
"""


@pytest.mark.parametrize(
    ("grid", "is_launched"),
    [("(1, ceil_div(n, 128))", False), ("(ceil_div(n, 128), 1)", True)],
)
def test_a_side_that_grows_beyond_what_cuda_allows_is_told_with_its_line(
    grid: str, is_launched: bool
) -> None:
    lab = find("vector-add")
    result = check(lab, KERNEL % grid)
    if is_launched:
        assert result.status == "passed"
        return
    assert (result.status, result.line) == ("bad launch rule", 1)
    assert "A grid of (1, 262144, 1) can't be launched" in result.message
    assert (
        "with n = 33,554,432, for which the lab asks how fast it is" in result.message
    )


def test_limits_are_those_of_every_gpu() -> None:
    assert refusal(((1 << 31) - 1, 65_535, 65_535), (1024, 1, 1)) == ""
    assert "can't be launched" in refusal((1, 1, 65_536), (1, 1, 1))
    assert "can't be launched" in refusal((1, 1, 1), (1, 1, 65))
    assert "1,056 threads" in refusal((1, 1, 1), (33, 32, 1))
    assert "at least 1" in refusal((1, 0, 1), (1, 1, 1))
