"""What the JSON API does: functions of an admitted request, in one transaction each.

Imports `handlers`.
"""
