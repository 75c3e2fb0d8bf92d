"""What a change would give: evidence, edits of bare run and source, predictions.

Imports `replay` and what is below; `techniques.registry` orders the changes.
"""
