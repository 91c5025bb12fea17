"""PyTorch's own operator samples (op_db of its test suite) through weft and through PyTorch.

`python -m tests.parity` or `python tools/parity.py` prints passed / failed / missing per operator;
tests/test_parity_opdb.py fails when an operator passes fewer samples than expected.txt says.
"""
