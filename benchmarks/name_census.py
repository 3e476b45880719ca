"""Count how many packages use each of PyTorch's public names, and how often.

    pip install --no-deps --target DIR timm torchvision ...
    python benchmarks/name_census.py DIR > benchmarks/name_census.csv

Reads the packages' sources; nothing is imported or run.  A name used by no package has no row.
A Tensor method is counted by its attribute name, whatever object it is called on: `split` is also
a method of strings, so that these counts are upper bounds.
"""

from __future__ import annotations

import ast
import csv
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from convcore._errors import pytorch as names

# Packages that run on convcore under `convcore run`, by the folder that pip installs.
PACKAGES = (
    *("captum", "einops", "gpytorch", "ignite", "kornia", "monai", "opacus", "pytorch_grad_cam"),
    *("pytorch_lightning", "segmentation_models_pytorch", "skorch", "timm", "torchdiffeq"),
    *("torchinfo", "torchmetrics", "torchvision", "zennit"),
)


def aliases_of(tree: ast.AST) -> dict[str, str]:
    """Map each name that a file imports from PyTorch to its full path, as F to
    torch.nn.functional."""
    aliases = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "torch":
                    path = alias.name if alias.asname else "torch"
                    aliases[alias.asname or "torch"] = path
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
            for alias in node.names:
                aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return aliases


def dotted_path(node: ast.AST, aliases: dict[str, str]) -> str:
    """Return the full path of an expression such as nn.Conv2d; '' if it is not of PyTorch."""
    if isinstance(node, ast.Name):
        return aliases.get(node.id, "")
    if isinstance(node, ast.Attribute) and (path := dotted_path(node.value, aliases)):
        return f"{path}.{node.attr}"
    return ""


def public_name(path: str) -> str:
    """Return the public name that a path leads to: torch.nn.Conv2d for
    torch.nn.modules.conv.Conv2d.weight; '' for a module or a private name."""
    module, *rest = path.split(".")
    while rest and names.is_module(f"{module}.{rest[0]}"):
        module = f"{module}.{rest.pop(0)}"
    while rest and module:
        if names.is_public(module, rest[0]):
            return f"{module}.{rest[0]}"
        module = module.rpartition(".")[0]
    return ""


def names_in(node: ast.AST, aliases: dict[str, str]) -> Iterator[str]:
    """Yield the public name of each use in a syntax tree."""
    if path := dotted_path(node, aliases):
        yield public_name(path)
        return
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
        for alias in node.names:
            yield public_name(f"{node.module}.{alias.name}")
    elif isinstance(node, ast.Attribute) and names.is_public("torch.Tensor", node.attr):
        yield f"torch.Tensor.{node.attr}"
    for child in ast.iter_child_nodes(node):
        yield from names_in(child, aliases)


def count_names(folder: Path) -> Counter[str]:
    """Count the uses of each public name in the Python files of a folder."""
    uses: Counter[str] = Counter()
    for file in sorted(folder.rglob("*.py")):
        tree = ast.parse(file.read_bytes())
        uses.update(name for name in names_in(tree, aliases_of(tree)) if name)
    return uses


def main(folder: Path) -> None:
    """Print the table as CSV, the most used names first."""
    packages: Counter[str] = Counter()
    uses: Counter[str] = Counter()
    for package in PACKAGES:
        counts = count_names(folder / package)
        if not counts:
            raise SystemExit(f"name_census: {folder / package} uses no name of PyTorch")
        uses.update(counts)
        packages.update(counts.keys())
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(("name", "packages", "uses"))
    for name in sorted(uses, key=lambda name: (-packages[name], -uses[name], name)):
        table.writerow((name, packages[name], uses[name]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
