"""`warpbook doctor`: what it looks at, a function a part.

May be imported by other distributions that add checks.
"""
