"""What holds a GPU back now, from counters, and what slows its clocks.

Imports no other room.
"""
