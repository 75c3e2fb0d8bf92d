"""What engines answer: data that grading joins and cards show.

Imports `cases` and `lab`.
"""
