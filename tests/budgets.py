"""Count the lines of the package and of the tests by folder; fail above what either may have.

    python tests/budgets.py

The aim is 100,000 and 60,000 lines.  Lower a limit when a change leaves room below it.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
LIMITS = {"convcore": 132_000, "tests": 93_000}
KINDS = {".py", ".pyx", ".pxd", ".c", ".h"}
GENERATED = {"_microkernels.pxd", "_version.py"}


def lines_by_folder(root: Path) -> Counter[str]:
    """Count the lines of sources below a folder, by the name of the file or folder right in it."""
    found: Counter[str] = Counter()
    for file in root.rglob("*"):
        if file.suffix in KINDS and file.name not in GENERATED:
            found[file.relative_to(root).parts[0]] += file.read_bytes().count(b"\n")
    return found


def main() -> int:
    """Print both tables; return 1 if one of the sums is above its limit."""
    over = False
    for name, limit in LIMITS.items():
        found = lines_by_folder(CHECKOUT / name)
        total = sum(found.values())
        over |= total > limit
        print(f"{name}: {total:,} lines, at most {limit:,}{' EXCEEDED' if total > limit else ''}")
        print("   ", ", ".join(f"{part} {n:,}" for part, n in found.most_common(24)))
    return over


if __name__ == "__main__":
    sys.exit(main())
