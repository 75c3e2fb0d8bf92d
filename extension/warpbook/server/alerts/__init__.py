"""Alert rules: judged once a second, shown, and changed by a form.

Imports `records`, `stream` and `web`.
"""
