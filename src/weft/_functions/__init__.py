"""Functions over tensors that are written in Python, over the operators.

Each is PyTorch's function of the same name in the module `torch`; `weft._exports` lists them.
"""
