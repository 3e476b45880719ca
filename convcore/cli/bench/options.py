"""The options of ``convcore bench``, and their values as layers, peers and environments."""

from __future__ import annotations

import argparse
import datetime
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convcore.bench.layers import DTYPES, FIELDS, FORMATS, PASSES
from convcore.bench.process import ISAS, worker_environment
from convcore.cli.errors import UsageError, count, require_extra, require_place, seed
from convcore.cli.machine import cpu_name
from convcore.cli.terminal import columns

if TYPE_CHECKING:
    from rich.console import Console

QUICK_ROUNDS, ROUNDS = 5, 9
# The suite of small operations, which are no layers; bench/overhead.py.
OVERHEAD = "overhead"


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
        "H*W), real (a sample of 430 layers of every rank and kind), real-all (all of them, in "
        "hours); may be repeated. overhead, alone: small operations, by which the cost of a call "
        "and of the graph shows",
    )
    group.add_argument(
        "--nets",
        nargs="?",
        const=(),
        type=_names,
        metavar="NAME,...",
        help="whole nets, trained and run, in place of layers: resnet18, resnet50, mobilenet_v2, "
        "vgg16, unet, lenet; all of them if none is named. ONNX files too, run beside what reads "
        "them: net.onnx, or with the sizes that it leaves open net.onnx:1x3x224x224",
    )
    group.add_argument(
        "--busy",
        action="store_true",
        help="nets and small layers while other processes take the processors, which it starts "
        "and ends; --rounds is the number of trials, of which the worst counts, 3 by default",
    )
    group.add_argument(
        "--compiled",
        action="store_true",
        help="with --nets: PyTorch's nets by torch.compile, too, which needs a C++ compiler and "
        "takes a minute each",
    )
    group.add_argument(
        "--precision",
        choices=("float32", "bf16"),
        default="float32",
        help="with --nets: bf16 times bfloat16 beside float32, PyTorch's autocast('cpu', bfloat16) "
        "and convcore's products in bfloat16, where the processor has that arithmetic",
    )
    group.add_argument(
        "--layer",
        action="append",
        metavar=",".join(FIELDS),
        help="a layer of your own, instead of a suite or beside those named; may be repeated",
    )
    group.add_argument(
        "--passes", "--maps", type=_some_of(PASSES), default=PASSES, metavar=",".join(PASSES),
        help="--maps is an older name",
    )  # fmt: skip
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
        "numpy; none for none. With --nets torch_bfloat16 and convcore_bfloat16 too: one of the "
        "two that --precision bf16 adds",
    )


def _add_how(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--rounds", type=count, metavar="R", help="samples a cell, taken in turn")
    group.add_argument("--seed", type=seed, default=0, help="of the arrays' random numbers")
    group.add_argument(
        "--isa",
        choices=ISAS,
        default="native",
        help="hold convcore, OpenBLAS, oneDNN and PyTorch to an instruction set; native lets them "
        "use all that the CPU has",
    )
    group.add_argument(
        "--algorithm",
        metavar="NAME",
        help="hold convcore to an algorithm, in every pass of a layer that it can compute: im2col, "
        "indirect, winograd ...; its speed is then held to no limit",
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
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw the ratios, layer by layer, or with --nets the speed beside PyTorch's: .svg or "
        ".png",
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
        "--details", action="store_true", help="with --quick: print each cell, as without it"
    )
    group.add_argument(
        "--check", action="store_true", help="exit 1 if a figure is beyond the limit promised"
    )


def _some_of(allowed: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of a list of allowed names; it returns them in the order of ``allowed``."""

    def read(text: str) -> tuple[str, ...]:
        names = text.split(",")
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(allowed)}")
        return tuple(name for name in allowed if name in names)

    return read


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name for name in text.split(",") if name))
    if not names:
        raise argparse.ArgumentTypeError(f"must be names with commas between them, got {text!r}")
    return names


def _counts(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(count(part) for part in text.split(",")))


def suites_of(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the suites asked for; quick if neither a suite nor a layer was."""
    from convcore.bench.suites import ALL_REAL, REAL, SUITES

    known = (*SUITES, REAL, ALL_REAL, OVERHEAD)
    asked = tuple(dict.fromkeys(name for names in arguments.suite or () for name in names))
    for name in asked:
        if name not in known:
            raise UsageError(f"--suite: {name!r} is none of {', '.join(known)}")
    return asked or (() if arguments.layer else ("quick",))


def peers_of(asked: tuple[str, ...] | None, quick: bool = False) -> tuple[str, ...]:
    """Return the peers asked for, or those that are installed and not too slow."""
    from convcore.bench.peers import NETS_ONLY, PEERS, QUICK, SLOW, is_installed

    known = [name for name in PEERS if name != "convcore"]
    if asked is None:
        usual = QUICK if quick else [name for name in known if name not in (*SLOW, *NETS_ONLY)]
        return tuple(filter(is_installed, usual))
    if asked == ("none",):
        return ()
    for name in asked:
        if name not in known:
            raise UsageError(f"--peers: {name!r} is none of {', '.join(known)}")
        if not is_installed(name):
            needed = PEERS[name][0]
            needs = "" if needed == (name,) else f" (it needs {' and '.join(needed)})"
            raise UsageError(f"--peers: {name} is not installed{needs}")
    return asked


def refuse(arguments: argparse.Namespace, what: str, *options: str) -> None:
    """Raise UsageError for an option that was given and means nothing for what is measured."""
    usual = argparse.ArgumentParser()
    add_options(usual)
    for option in options:
        name = option.replace("-", "_")
        if getattr(arguments, name) != usual.get_default(name):
            raise UsageError(f"--{option} is not for {what}")


def require_drawable(file: Path | None, page: Path | None) -> None:
    """Raise UsageError if a chart or a page's chart cannot be drawn."""
    if file or page:
        require_extra("bench", "matplotlib")
    if file:
        from convcore.bench.chart import is_drawable

        if not is_drawable(file):
            raise UsageError(f"--plot: cannot write a picture as {file.name!r}, .svg is one")


def rounds_of(arguments: argparse.Namespace) -> int:
    """Return the number of samples of each thing that is timed."""
    return arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS)


def keeps_environment(arguments: argparse.Namespace) -> bool:
    """Whether the workers get the environment as it was found."""
    return arguments.env == "keep"


def environment_of(arguments: argparse.Namespace, threads: int) -> dict[str, str]:
    """Return the environment of workers that compute with so many threads."""
    keep = keeps_environment(arguments)
    return worker_environment(os.environ, threads, arguments.isa, keep)


def require_folders(arguments: argparse.Namespace, *options: str) -> None:
    """Raise UsageError for a file that cannot be where it is to be."""
    for option in options:
        if (file := getattr(arguments, option)) is not None:
            require_place(f"--{option}", file)


def machine_now() -> dict[str, Any]:
    """Return the CPU and the date, as pages and files have them."""
    return {"cpu": cpu_name(), "date": datetime.date.today().isoformat()}


def command_line(arguments: argparse.Namespace) -> str:
    """Return the user's command line; paths in it are relative, as they are elsewhere too."""
    return shlex.join(["convcore", *map(_relative, arguments.argv)])


def _relative(word: str) -> str:
    """Return an argument, a path or ``--option=path`` that is absolute made relative to here."""
    option, sign, value = word.rpartition("=")
    try:
        return option + sign + os.path.relpath(value) if os.path.isabs(value) else word
    except ValueError:  # Windows: on another drive
        return word


def console_of(width: int | None = None) -> Console:
    """Return a console; ``width`` is what a table needs where the output, a file, has none."""
    from rich.console import Console

    class Quiet(Console):
        """A Console that leaves it to the command what a pipe is that nobody reads."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = Quiet(highlight=False)
    if width is not None and not console.is_terminal and not columns():
        console.width = width
    return console
