"""PTX as text: its parts, linked programs, loops, and the types of its numbers.

Imports no other room of the interpreter.
"""
