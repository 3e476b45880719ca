"""The options of ``convcore bench``, and how their values are read."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from convcore.bench.environment import ISAS
from convcore.bench.layer import DTYPES, FIELDS, FORMATS, MAPS
from convcore.cli.bench.asked import QUICK_ROUNDS


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add all options, in the groups that ``--help`` shows."""
    _add_what(parser.add_argument_group("what to measure"))
    _add_how(parser.add_argument_group("how"))
    _add_results(parser.add_argument_group("what to do with it"))


def _add_what(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--quick", action="store_true", help=f"at most {QUICK_ROUNDS} rounds: under a minute"
    )
    group.add_argument(
        "--suite",
        action="append",
        type=_names,
        metavar="NAME,...",
        help="quick (the default), table, resnet50, vgg16, mobilenetv2, unet, lenet, stems, "
        "depthwise, dilated, grouped, n1 (one image), tiny, scaling (how cost grows with N and "
        "H*W); may be repeated. overhead, alone: small operations, by which the cost of a call and "
        "of the graph shows",
    )
    group.add_argument(
        "--nets",
        nargs="?",
        const=(),
        type=_names,
        metavar="NAME,...",
        help="whole nets, trained and run, in place of layers: resnet18, resnet50, mobilenet_v2, "
        "vgg16, unet, lenet; all of them if none is named",
    )
    group.add_argument(
        "--compiled",
        action="store_true",
        help="with --nets: PyTorch's nets by torch.compile, too, which needs a C++ compiler and "
        "takes a minute each",
    )
    group.add_argument(
        "--layer",
        action="append",
        metavar=",".join(FIELDS),
        help="a layer of your own, instead of a suite or beside those named; may be repeated",
    )
    group.add_argument("--maps", type=_some_of(MAPS), default=MAPS, metavar=",".join(MAPS))
    group.add_argument(
        "--formats", type=_some_of(FORMATS), default=FORMATS, metavar=",".join(FORMATS)
    )
    group.add_argument(
        "--dtypes", type=_some_of(DTYPES), default=DTYPES[:1], metavar=",".join(DTYPES),
        help="default: float32",
    )  # fmt: skip
    group.add_argument("--threads", type=_counts, metavar="1,2", help="default: 1 and all")
    group.add_argument(
        "--peers",
        type=_names,
        metavar="torch,onnxruntime,openvino,numpy,scipy",
        help="default: all installed but scipy, which takes seconds a call; with --quick torch and "
        "numpy; none for none",
    )


def _add_how(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--rounds", type=_count, metavar="R", help="samples a cell, taken in turn")
    group.add_argument("--seed", type=int, default=0, help="of the arrays' random numbers")
    group.add_argument(
        "--isa",
        choices=ISAS,
        default="native",
        help="hold convcore, OpenBLAS, oneDNN and PyTorch to an instruction set; native lets them "
        "use all that the CPU has",
    )
    group.add_argument(
        "--strict", action="store_true", help="hold convcore to direct summation: no Winograd"
    )
    group.add_argument(
        "--env", choices=("keep",), help="keep: give the workers the environment as it was found"
    )


def _add_results(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--json", type=Path, metavar="FILE", help="save everything measured")
    group.add_argument("--csv", type=Path, metavar="FILE", help="save a row a cell")
    group.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw the ratios, layer by layer: .svg or .png"
    )
    group.add_argument(
        "--page", type=Path, metavar="FILE.md", help="write a page in Markdown, its chart beside it"
    )
    group.add_argument(
        "--compare",
        type=Path,
        metavar="OLD.json",
        help="exit 1 if a cell is slower beside its peers than it was there, beyond the noise",
    )
    group.add_argument(
        "--check", action="store_true", help="exit 1 if a figure is beyond the limit promised"
    )


def _some_of(allowed: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of some of the names allowed, in their own order."""

    def read(text: str) -> tuple[str, ...]:
        names = text.split(",")
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(allowed)}")
        return tuple(name for name in allowed if name in names)

    return read


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in text.split(",") if name))


def _count(text: str) -> int:
    """Read a whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, got {text!r}")
    return int(text)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_count(part) for part in text.split(",")))
