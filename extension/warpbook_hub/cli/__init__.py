"""The commands of `warpbook hub`.

The top of the package.

Imports `course`, `database`, `grader`, `keeping`, `lti`, `notices`, `running`,
`service` and `spawners`.
"""
