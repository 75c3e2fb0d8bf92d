"""One module for each kind of change: what shows it, and what it edits.

Imports `advice` and what is below; `registry` lists the modules.
"""
