"""weft and PyTorch side by side: `python -m bench --help`."""
