"""A hub on one machine: JupyterHub, the service and a grader, started and watched."""
