"""Threads that wait, talk and end: barriers, warps, schedules, endless loops.

Imports `memory` and what is below.
"""
