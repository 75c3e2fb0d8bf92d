"""Learners' Python on a GPU: clock, inputs and verdict are in another process."""
