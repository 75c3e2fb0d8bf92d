"""Who is in a course, and what is published to whom until when.

Imports `database` and `rules`.
"""
