"""The commands of `warpbook hub`.

The top of the package.

Imports `database`, `grader`, `keeping`, `lti`, `running`, `service` and `spawners`.
"""
