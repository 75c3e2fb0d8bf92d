"""Runs learners' kernels on a GPU, in a process that no host code of theirs enters."""
