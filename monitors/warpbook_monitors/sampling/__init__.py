"""One clock and a thread for each device: when devices are read, and its cost.

Imports no other room.
"""
