"""A lab's result as a card: computed once, then drawn by three thin renderers.

Imports `cases`, `lab` and `results`.
"""
