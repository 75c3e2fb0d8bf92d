"""Arithmetic of operators that factorise matrices, and solve by what came of it.

These are LAPACK's counts for the leading term. Eigenvalues and singular values take
iterations after it, as many as the numbers want, which do not count.
"""

from __future__ import annotations

import math

from warpbook_profiler.events.columns import Operands
from warpbook_profiler.facts.traffic import Counted, Formula


def _factorised(times: float) -> Formula:
    """As many times what elimination takes: two thirds of a square matrix's n³."""

    def formula(called: Operands) -> Counted:
        *batch, rows, columns = called.dims[0]
        side = min(rows, columns)
        steps = 2 * rows * columns * side - (rows + columns) * side**2 + 2 * side**3 / 3
        every = math.prod(batch)
        return Counted(round(times * every * steps), every * rows * columns)

    return formula


def _solved(times: int, right: int, triangle: int) -> Formula:
    """Each right side meets a triangular matrix as many times."""

    def formula(called: Operands) -> Counted:
        elements = math.prod(called.dims[right])
        return Counted(times * elements * called.dims[triangle][-1], elements)

    return formula


SOLVERS: dict[str, Formula] = {
    "aten::linalg_lu_factor_ex": _factorised(1.0),
    "aten::linalg_cholesky_ex": _factorised(0.5),
    "aten::linalg_ldl_factor_ex": _factorised(0.5),
    "aten::cholesky_inverse": _factorised(1.0),
    "aten::geqrf": _factorised(2.0),
    "aten::linalg_qr": _factorised(4.0),
    "aten::linalg_householder_product": _factorised(2.0),
    "aten::_linalg_eigh": _factorised(2.0),
    "aten::_linalg_svd": _factorised(4.0),
    "aten::linalg_solve_triangular": _solved(1, 1, 0),
    "aten::linalg_lu_solve": _solved(2, 2, 0),
    "aten::cholesky_solve": _solved(2, 0, 1),
}
