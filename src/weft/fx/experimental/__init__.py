"""Passes that PyTorch calls experimental."""
