"""Liberal edits of loops, which only runs on copies tell right from wrong.

Each rewrite is right for tensors whose methods mean what they usually do.
"""
