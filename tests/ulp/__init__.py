"""Accuracy of the elementary functions: references in 60 digits, arguments, bounds, measurement."""
