"""What a change would give: evidence, edits of the bare run, predictions, sketches.

Imports `replay` and what is below; `techniques.registry` orders the changes.
"""
