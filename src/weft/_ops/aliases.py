"""Second names of operators, as PyTorch has them: clip for clamp."""

# second name: first name; functions, methods and in-place methods alike
ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "divide": "div",
    "fix": "trunc", "ger": "outer", "greater": "gt", "greater_equal": "ge", "less": "lt",
    "less_equal": "le", "multiply": "mul", "negative": "neg", "not_equal": "ne",
    "subtract": "sub", "swapdims": "transpose", "true_divide": "div", "unsafe_chunk": "chunk",
    "unsafe_split": "split",
}  # fmt: skip
