"""How each item of the checklist is judged.

Imports `checklist.facts`.
"""
