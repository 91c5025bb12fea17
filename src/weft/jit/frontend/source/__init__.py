"""Where source comes from, what its names mean, and what is refused."""
