"""Events of a run as columns, with intervals and marks over them.

Imports `model` alone.
"""
