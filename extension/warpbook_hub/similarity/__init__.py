"""How much the submissions of a lab have in common, as a ranking.

Imports `course`, `database` and `work`.
"""
