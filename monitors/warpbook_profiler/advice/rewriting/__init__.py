"""Rewrites of loops, calls and models; one that proves nothing is a liberal edit.

Only runs on copies tell a liberal edit right from wrong. Imports `code`, and what the
room around it imports.
"""
