"""The emitters of tools/gen.py: from the operator table to C++ and Python stubs."""
