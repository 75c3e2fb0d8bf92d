"""What a learner and an author do with labs.

Imports `compiler`, `grading`, `lab`, `results` and `sandbox`.
"""
