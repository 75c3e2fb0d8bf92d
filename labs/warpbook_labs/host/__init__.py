"""Labs on host code: a learner's `prepare` and `run`, checked without a GPU."""
