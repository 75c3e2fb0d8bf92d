"""A submission graded by every engine that is here.

Imports `cases`, `engines`, `gpu`, `lab`, `results` and `sandbox`.
"""
