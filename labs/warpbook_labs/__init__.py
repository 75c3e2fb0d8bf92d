"""Exercises on the attached GPU; so far, the tour notebook."""
