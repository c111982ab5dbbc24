"""Expressions of the stand-in package."""
