"""Ways to run a submission; none knows another.

Imports `cases`, `compiler`, `gpu`, `lab`, `results` and `sandbox`.
"""
