"""Python's statements and expressions."""
