"""`python -m gyrecheck` is the `gyrecheck` command."""

from gyrecheck.cli import main

if __name__ == "__main__":
    main()
