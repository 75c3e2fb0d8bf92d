"""Routes of reports: pages, figures, timelines, comparison, trace files.

Imports `past`, `records` and what is below.
"""
