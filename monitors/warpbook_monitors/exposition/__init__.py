"""The newest frame for monitoring systems: Prometheus, dcgm-exporter's names.

Imports `holders` and `sampling`.
"""
