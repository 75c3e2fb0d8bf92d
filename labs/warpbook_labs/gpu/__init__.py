"""What every engine on a GPU shares: driver, clock, limits of the chip, watchdog.

Imports `cases`, `compiler`, `lab`, `results` and `sandbox`.
"""
