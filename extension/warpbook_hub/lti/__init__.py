"""A learning platform, by LTI 1.3: its launches, roster (NRPS) and grades (AGS).

Imports `course`, `database`, `rules` and `work`.
"""
