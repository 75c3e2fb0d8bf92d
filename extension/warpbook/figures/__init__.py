"""Bokeh figures for what people explore; pure: records in, a figure out.

Imports no other room.
"""
