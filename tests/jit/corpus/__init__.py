"""Modules and programs in the manner of real ones. Each file is plain `import weft as torch`
source, and runs under PyTorch too when that line reads `import torch`.

Each file has CASES: name -> (makes the module or gives the function, makes the inputs).
"""
