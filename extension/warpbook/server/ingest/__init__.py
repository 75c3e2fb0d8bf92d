"""Where kernels hand in reports: HTTP on loopback, behind a credential of each.

Imports `cells` and what is below.
"""
