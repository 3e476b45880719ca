"""``convcore run-model``: what an ONNX file's net makes of a photograph or an array."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from convcore._errors.text import printable
from convcore.cli.errors import UsageError, count, require_place
from convcore.cli.models.files import axes_of, first_of, fits, lines_of, one_line, open_model
from convcore.cli.models.pictures import SUFFIXES, add_options, read_picture, resize_hint, scale_of

_SECONDS = 1.0
# Of each net, in a profile.
_CALLS = 10
# Of a batch, whose largest results are printed.
_PICTURES = 8


def add_command(commands: argparse._SubParsersAction) -> None:
    """Add ``run-model`` to the parser."""
    parser = commands.add_parser(
        "run-model",
        help="run a net from an ONNX file on a photograph or an array",
        description="Load a net from an ONNX file, call it on a photograph or on arrays, and "
        "print the largest elements of each output.",
    )
    parser.add_argument("model", type=Path, metavar="NET.onnx")
    parser.add_argument(
        "-i",
        "--input",
        type=Path,
        required=True,
        metavar="FILE",
        help="a photograph, resized to the net's input; an array, x.npy; or an array for each "
        "input by its name, x.npz",
    )
    parser.add_argument(
        "--top",
        type=count,
        default=5,
        metavar="N",
        help="elements shown of each picture's outputs: 5",
    )
    parser.add_argument(
        "--labels", type=Path, metavar="FILE", help="what the last axis means: one name a line"
    )
    add_options(parser, "of a photograph")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.npz", help="write the outputs there"
    )
    parser.add_argument(
        "--time", action="store_true", help="print how long a call takes, plain and optimized"
    )
    parser.add_argument(
        "--profile",
        nargs="?",
        const=Path(),
        type=Path,
        metavar="TRACE.json",
        help="print each step of the optimized net with its time, beside ONNX Runtime's nodes if "
        "that is installed; and write the steps for https://ui.perfetto.dev",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Call the net and print its outputs."""
    import convcore

    if arguments.profile not in (None, Path()):
        require_place("--profile", arguments.profile)
    if arguments.output is not None:
        require_place("--output", arguments.output)
        if arguments.output.suffix.lower() != ".npz":
            raise UsageError(f"--output {arguments.output}: arrays are written to a file.npz")
    _require_file(arguments.model)
    net, infos = open_model(str(arguments.model))
    labels = None if arguments.labels is None else lines_of(arguments.labels)
    inputs = [convcore.from_numpy(array) for array in _inputs(arguments, infos)]
    axes = [axis for info in infos for axis in axes_of(info)]
    results = _called(arguments, net, inputs, resize_hint(arguments.input, axes, arguments.size))
    named = dict(zip(net.output_names, results, strict=True))
    for name, result in named.items():
        print(f"\n{printable(name)}: {_kind(result)}")
        for line in _largest(result, arguments.top, labels):
            print(f"  {line}")
    if arguments.output is not None:
        _write(arguments.output, named)
    if arguments.time:
        _print_times(net, inputs)
    if arguments.profile is not None:
        _print_profile(arguments, net, inputs)
    return 0


def _require_file(model: Path) -> None:
    """Raise a `UsageError` for the name of a net in the place of a file."""
    from convcore import models

    if str(model) in vars(models) and not model.exists():
        raise UsageError(
            f"{model} is a net of convcore.models, and here stands an ONNX file: "
            f"`convcore inspect {model} --input FILE` runs it, onnx.export(net, x, file) writes it"
        )


def _inputs(arguments: argparse.Namespace, infos: Sequence[Any]) -> list[Any]:
    """Return an array for each input of the net."""
    file, names = arguments.input, [info.name for info in infos]
    if file.suffix.lower() != ".npz" and len(infos) != 1:
        raise UsageError(f"the net has the inputs {', '.join(names)}: give them in one x.npz")
    if file.suffix.lower() in SUFFIXES:
        array, said = read_picture(*(file, axes_of(infos[0]), arguments.size), *scale_of(arguments))
        print(said)
        return [array]
    for option in ("mean", "std", "imagenet", "largest", "size"):
        if getattr(arguments, option):
            raise UsageError(f"--{option} is of a photograph, not of --input {file}")
    if file.suffix.lower() not in (".npy", ".npz"):
        known = ", ".join((".npy", ".npz", *SUFFIXES))
        raise UsageError(f"--input {file}: allowed are files that end in {known}")
    try:
        found = _arrays(file, names[0])
    except FileNotFoundError:
        raise UsageError(f"{file}: No such file or directory") from None
    except Exception as error:  # zipfile, zlib and NumPy have errors of all kinds
        raise UsageError(f"{file}: no arrays can be read: {one_line(error)}") from None
    if sorted(found) != sorted(names):
        raise UsageError(
            f"{file} has {first_of(list(found))}; the net's inputs are {', '.join(names)}"
        )
    return [_checked(found[info.name], info) for info in infos]


def _arrays(file: Path, name: str) -> dict[str, Any]:
    """Return a file's arrays by name; the one of a .npy file has the name given."""
    import numpy as np

    if file.suffix.lower() == ".npy":
        return {name: np.load(file, allow_pickle=False)}
    with np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def _checked(array: Any, info: Any) -> Any:
    """Return an array of an input's dtype, if it has its sizes."""
    from onnx.helper import tensor_dtype_to_np_dtype

    axes, kind = axes_of(info), info.type.tensor_type
    if kind.HasField("shape") and not fits(axes, array.shape):
        raise UsageError(
            f"input {info.name!r} is [{', '.join(map(str, axes))}], got an array of "
            f"{list(array.shape)}"
        )
    dtype = tensor_dtype_to_np_dtype(kind.elem_type)
    if array.dtype.kind != dtype.kind:
        raise UsageError(f"input {info.name!r} is {dtype.name}, got an array of {array.dtype.name}")
    return array if array.dtype == dtype else _narrowed(array, dtype, info.name)


def _narrowed(array: Any, dtype: Any, name: str) -> Any:
    """Return an array in another dtype of its kind, and say so; refuse what that cannot hold."""
    import numpy as np

    from convcore.engine.runtime.errstate import quiet

    cast = quiet(array.astype, dtype)
    lost = np.isfinite(array) & ~np.isfinite(cast) if dtype.kind in "fc" else cast != array
    if lost.any():
        raise UsageError(
            f"input {name!r} is {dtype.name}, which cannot hold {array[lost].flat[0]} of an array "
            f"of {array.dtype.name}"
        )
    print(f"{printable(name)}: {array.dtype.name} taken as {dtype.name}")
    return cast


def _called(
    arguments: argparse.Namespace, net: Any, inputs: Sequence[Any], hint: str
) -> tuple[Any, ...]:
    import convcore

    try:
        with convcore.no_grad():
            results = net(*inputs)
    except (RuntimeError, ValueError, convcore.onnx.OnnxError) as error:
        shown = ", ".join(str(list(each.shape)) for each in inputs)
        raise UsageError(
            f"{arguments.model} cannot take {shown}{hint}: {one_line(error)}"
        ) from None
    return results if isinstance(results, tuple) else (results,)


def _kind(result: Any) -> str:
    """Return what a result is, in words."""
    if not hasattr(result, "shape"):
        return f"a sequence of {len(result)}"
    shape = " x ".join(map(str, result.shape)) or "one number"
    return f"{shape} of {str(result.dtype).removeprefix('torch.')}"


def _largest(result: Any, n: int, labels: list[str] | None) -> list[str]:
    """Return the largest elements of each of the first pictures' outputs, a line each.

    It says where, how large, and what it means.
    """
    import numpy as np

    array = np.asarray(result.numpy() if hasattr(result, "numpy") else result)
    if array.dtype.kind not in "biuf" or not array.size:
        return []
    flat = array.reshape(-1)
    rows = array.reshape(len(array) if array.ndim > 1 else 1, -1)[:_PICTURES]
    best = np.argsort(-rows.astype(np.float64), axis=1, kind="stable")[:, :n]
    lines = []
    for place in (best + rows.shape[1] * np.arange(len(rows))[:, np.newaxis]).reshape(-1):
        index = tuple(int(i) for i in np.unravel_index(place, array.shape))
        # The first axis of one picture says nothing.
        shown = index[1:] if array.ndim > 1 and array.shape[0] == 1 else index
        line = f"{', '.join(map(str, shown)):>12}  {flat[place]:.6g}"
        if labels is not None and index and index[-1] < len(labels):
            line += f"  {labels[index[-1]]}"
        lines.append(line)
    return lines


def _write(file: Path, named: dict[str, Any]) -> None:
    import numpy as np

    try:
        with open(file, "wb") as stream:
            np.savez(stream, **{name: np.asarray(value) for name, value in named.items()})
    except OSError as error:
        raise UsageError(f"--output {file}: {error.strerror}") from None


def _print_times(net: Any, inputs: Sequence[Any]) -> None:
    """Time the net as it is and optimized, in turn."""
    import convcore

    fast = convcore.optimize_for_inference(net, *inputs)
    with convcore.no_grad():
        plain, optimized = _median_times([lambda: net(*inputs), lambda: fast(*inputs)])
    threads = convcore.get_num_threads()
    print(
        f"\nA call takes {1e3 * plain:.2f} ms, optimized {1e3 * optimized:.2f} ms: medians, on "
        f"{threads} thread{'s' if threads > 1 else ''}."
    )


def _print_profile(arguments: argparse.Namespace, net: Any, inputs: Sequence[Any]) -> None:
    """Profile the optimized net, and the file in ONNX Runtime; print both."""
    import tempfile

    import convcore
    from convcore import inspection

    fast = convcore.optimize_for_inference(net, *inputs)
    fast(*inputs)  # makes the plan
    with inspection.profile(fast) as found:
        for _ in range(_CALLS):
            fast(*inputs)
    with tempfile.TemporaryDirectory() as folder:
        beside = _onnxruntime_profile(arguments.model, net.input_names, inputs, folder)
        print(f"\n{found.table(beside=beside)}")
    if arguments.profile != Path():
        found.export_chrome_trace(arguments.profile)
        print(f"Saved to {arguments.profile}")


def _onnxruntime_profile(
    model: Path, names: Sequence[str], inputs: Sequence[Any], folder: str
) -> str | None:
    """Run a file in ONNX Runtime on as many threads; return its profile, None if it is missing."""
    import convcore

    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = convcore.get_num_threads()
    options.enable_profiling, options.profile_file_prefix = True, str(Path(folder) / "profile")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, ["CPUExecutionProvider"])
    given = {name: each.numpy() for name, each in zip(names, inputs, strict=True)}
    for _ in range(_CALLS + 1):
        session.run(None, given)
    return session.end_profiling()


def _median_times(calls: Sequence[Callable[[], Any]]) -> list[float]:
    """Return the median time of each call, made in turn for about a second."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()  # makes plans, packs weights
    end = perf_counter() + _SECONDS
    while perf_counter() < end or len(times[0]) < 3:
        for call, own in zip(calls, times, strict=True):
            start = perf_counter()
            call()
            own.append(perf_counter() - start)
    return list(map(median, times))
