"""Modules that keep their inputs only and run again in backward."""
