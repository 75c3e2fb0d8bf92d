"""The optimisation checklist: what a question is, and how its answers are judged.

The questions are in `techniques`. Imports `advice`, `facts` and `model`.
"""
