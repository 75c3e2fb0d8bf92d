"""The calls that a program may make: what each computes, costs and asks for.

Imports nothing else of the judge.
"""
