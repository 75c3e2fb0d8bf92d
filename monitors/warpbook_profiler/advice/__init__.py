"""What a change would give: evidence, edits of the bare run, predictions, sketches.

Imports `verdict` and what is below; techniques are registered in `registry`.
"""
