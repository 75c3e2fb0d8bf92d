"""A machine with a GPU that is not there: what Python asks of it, recorded and judged."""
