"""What Python's builtins and standard library do in programs."""
