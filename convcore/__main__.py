"""``python -m convcore``: the same as the command ``convcore``."""

from convcore.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
