"""A lab's own Python, in a jailed process or in this one, and the questions of plans.

Imports the files of a lab.
"""
