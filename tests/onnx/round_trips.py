"""ONNX models tuned and written back: a line each, with what differs from ONNX Runtime.

    python tests/onnx/round_trips.py net.onnx other.onnx:1x3x48x96 --set sr=16000

Of each model: nodes, parameters, stored tensors that ten SGD steps have changed, the differences
before and after, the losses, and the difference of the model that `convcore.onnx.export` makes.
Sizes after a path are those of its first input; other free axes are 1. Anything else that is not as
it was, such as a node or an untouched weight, is an error. Exit code 1 if there is one. A net whose
course depends on its input is not exported.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from onnx_round_trip import arguments, by_net, by_runtime, distance, round_trip

from convcore.onnx import OnnxError, export, load


def inputs_of(model, net, sizes, numbers):
    """Return an array for each input: random numbers, or the number that is set."""
    rng, found = np.random.default_rng(0), {}
    for info in model.graph.input:
        if info.name not in net.input_names:
            continue
        kind = info.type.tensor_type
        shape = sizes or [max(each.dim_value, 1) for each in kind.shape.dim]
        sizes = None
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if info.name in numbers:
            found[info.name] = np.full(shape, numbers[info.name], dtype)
        elif dtype.kind == "f":
            found[info.name] = (2 * rng.random(shape) - 1).astype(dtype)
        else:
            found[info.name] = rng.integers(0, 255, shape).astype(dtype)
    return found


def line_of(path, sizes, numbers):
    """Return what is printed of a model."""
    model, net = onnx.load(path, load_external_data=False), load(path)
    inputs = inputs_of(model, net, sizes, numbers)
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / "new.onnx"
        try:
            export(net, tuple(arguments(net, inputs)), new)
            found = distance(by_net(net, inputs), by_runtime(new, inputs))
            exported = f"{found:.0e} exported"
        except OnnxError as error:
            exported = f"not exported: {error}"
        before, after, losses, changed = round_trip(path, inputs, folder)
    weights = list(net.parameters())
    numbers = sum(each.numel() for each in weights)
    return (
        f"{path.name}: {len(model.graph.node)} nodes, {len(weights)} parameters of {numbers:,} "
        f"numbers, {len(changed)} tensors changed, {before:.0e} before, {after:.0e} after, "
        f"loss {losses[0]:.2e} to {losses[-1]:.2e}, {exported}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--set", action="append", default=[], help="an input's value: sr=16000")
    given = parser.parse_args()
    numbers = {name: float(text) for name, text in (each.split("=") for each in given.set)}
    n_faults = 0
    for text in given.models:
        path, _, sizes = text.partition(".onnx:")
        shape = [int(each) for each in sizes.split("x")] if sizes else None
        path = Path(f"{path}.onnx" if sizes else path)
        try:
            print(line_of(path, shape, numbers), flush=True)
        except Exception as error:
            n_faults += 1
            print(f"{path.name}: {type(error).__name__}: {str(error)[:500]}", flush=True)
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main())
