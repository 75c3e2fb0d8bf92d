"""Labs whose learners write Python that drives a GPU, checked without one."""
