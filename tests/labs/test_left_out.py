"""Lines of CUDA C++ of which the compiler leaves nothing."""

from __future__ import annotations

from warpbook_labs.engines.interpreter.left_out import left_out, moved_from

SUMS = """\
__global__ void sums(const float* x, float* out, int n, int k) {
    // sum = 1; "for (" is no loop
    float sum = 0;
    for (int i = blockIdx.x; i < n; i += gridDim.x) {
        for (int j = 0; j < k; j++)
            sum += x[i * k + j];
        out[i] = sum;
    }
}
"""
SEEN = "\t.loc\t1 4 5\n\t.loc\t1 5 9\n\t.loc\t1 6 13\n\t.loc\t1 7 9\n"


def test_the_first_value_of_a_sum_that_goes_on_in_the_next_round_is_named() -> None:
    assert left_out(SUMS, SEEN, 7, (6, 5)) == ((3,), ())
    # a sum that each round begins anew is not at fault there
    first, loop = (
        "    float sum = 0;\n",
        "    for (int i = blockIdx.x; i < n; i += gridDim.x) {\n",
    )
    anew = SUMS.replace(first + loop, loop + first)
    assert left_out(anew, SEEN, 7, (6, 5)).values == ()


def test_the_head_of_a_loop_that_was_unrolled_is_named() -> None:
    unrolled = "\t.loc\t1 6 13\n\t.loc\t1 7 9, function_name $L, inlined_at 1 4 5\n"
    assert left_out(SUMS, unrolled, 7, (6,)).heads == (5,)


def test_text_that_is_no_whole_program_is_read_too() -> None:
    assert left_out("for (;;\nx += 1", "", 2, (2, 1)) == ((), ())


def test_an_access_that_was_moved_to_a_loop_s_head_is_found_within_the_loop() -> None:
    waits = """\
__global__ void wait(volatile int* flags, int n) {
    for (int i = 0; i < n; i++) {
        int seen;  // flags[i]
        do seen = flags[i];
        while (!seen);
    }
    flags[n] = 1;
}
"""
    assert moved_from(waits, 2, "flags") == (4,)
    assert moved_from(waits, 4, "flags") == ()
    assert moved_from(waits, 2, "others") == ()
    assert moved_from(waits, 99, "flags") == ()
