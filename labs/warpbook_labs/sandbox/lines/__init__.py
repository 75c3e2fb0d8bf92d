"""From which lines of a learner's Python a wrong value came.

Imports nothing else of the sandbox.
"""
