"""`python -m weft`, which is also installed as the command `weft`."""

from weft._command.main import main

if __name__ == "__main__":
    raise SystemExit(main())
