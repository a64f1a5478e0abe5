"""`python -m reference_loop`."""

from reference_loop.loop import main

if __name__ == "__main__":
    raise SystemExit(main())
