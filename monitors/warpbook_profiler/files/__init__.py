"""Trace files of Chrome's format, and which reader a file is for.

Imports `verdict`, `timeline` and what is below; `report` and `checklist` import it.
"""
