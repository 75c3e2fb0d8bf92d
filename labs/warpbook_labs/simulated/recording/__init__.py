"""The torch that a learner's Python meets where no GPU is; it records what is asked."""
