"""Exercises that are checked and graded, with a GPU or without; and the tour."""
