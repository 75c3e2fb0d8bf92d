"""Trace files of Chrome's format, and which reader a file is for.

The top of the package beside `checklist`.
"""
