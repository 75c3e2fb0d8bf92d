"""Plain data of a profile: what a report holds, without NumPy.

May be imported by every room; imports none.
"""
