"""Types of the language, and what values of classes, modules and tuples can do."""
