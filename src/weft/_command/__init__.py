"""The command `weft`: a file for each of its words."""
