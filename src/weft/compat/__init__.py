"""weft under the name torch: `import weft.compat.torch`, or `weft run script.py`.

`install` registers the import hook, `names` reads the table of PyTorch's names, `absent` makes the
placeholders for names that weft lacks. `overlay` holds the modules of torch.* whose names mean
something else in weft, or nothing; every other module is weft's own at the same place.
"""
