"""The commands of `warpbook hub`.

The top of the package.
"""
