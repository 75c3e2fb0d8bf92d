"""Functions of a learner that answer questions."""
