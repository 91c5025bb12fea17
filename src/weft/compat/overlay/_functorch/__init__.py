"""torch._functorch: its settings."""
