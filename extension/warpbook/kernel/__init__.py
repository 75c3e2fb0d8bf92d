"""What a notebook kernel loads: magics, the live widget, cell profiles.

Imports `reports`.
"""
