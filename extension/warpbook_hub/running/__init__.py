"""A hub on one machine: JupyterHub, the service and a grader, started and watched.

Imports `course`, `database`, `keeper`, `keeping`, `leases`, `lti`, `notices`, `queue`,
`service` and `spawners`.
"""
