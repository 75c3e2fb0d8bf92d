"""From events of a profiler to a verdict and what to change.

Holds all that reads, judges and words a trace. Needs no NVML and no Jupyter: of
`warpbook_monitors` it imports the ground floor alone (units, plain text, errors).
"""
