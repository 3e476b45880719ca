"""The ONNX standard's cases that pass, operator by operator, beside ONNX Runtime in the same run.

    python tests/onnx/scores.py           what is not all passed, and the totals
    python tests/onnx/scores.py --all     every operator

Below them: the package's stored models, a kind a line, and what is missing or fails here.

ONNX Runtime gets each model as it is and, where it does not know the version, with the newest
operator set that it knows, as far as the model is valid with that.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

from onnx_standard import (
    FOLDERS,
    LIGHT,
    cases_by_operator,
    fault,
    light_case,
    stored_case,
    stored_folders,
)

from convcore.onnx import Backend

NEWEST_OPSET, NEWEST_IR = 24, 11


def ours(model):
    return Backend.prepare(model).run


def theirs(model):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    return lambda arrays: session.run(None, dict(zip(names, arrays, strict=False)))


def stamped(model):
    """Return ONNX Runtime's session of a model with a version that it knows."""
    older = onnx.ModelProto()
    older.CopyFrom(model)
    older.ir_version = min(older.ir_version, NEWEST_IR)
    for each in older.opset_import:
        each.version = min(each.version, NEWEST_OPSET)
    onnx.checker.check_model(older)
    return theirs(older)


def passed(case):
    """Return whether a case passes here, in ONNX Runtime, and there with older versions."""
    with np.errstate(all="ignore"):
        mine, other = (not fault(case, by) for by in (ours, theirs))
        return np.array([1, mine, other, other or not fault(case, stamped)], int)


def row(name, counts):
    print("|", " | ".join(map(str, [name, *counts])), "|", flush=True)


def score_operators(shown):
    """Print a line for each operator, or for those with faults, and one for all."""
    totals = np.zeros(4, int)
    for name, cases in sorted(cases_by_operator().items()):
        counts = sum(map(passed, cases))
        totals += counts
        if shown or counts[1] < counts[0]:
            row(name, counts)
    row("all operators", totals)


def score_stored_models():
    """Print a line for each kind of stored models and one for all; return the faults' names."""
    kinds = {kind: [(stored_case, each) for each in stored_folders(kind)] for kind in FOLDERS}
    kinds["light"] = [(light_case, file) for file in LIGHT]
    totals, faults = np.zeros(4, int), []
    for kind, models in kinds.items():
        counts = np.zeros(4, int)
        for read, place in models:
            score = passed(read(place))
            counts += score
            faults += [] if score[1] else [place.stem]
        totals += counts
        row(f"models: {kind}", counts)
    row("all models", totals)
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="operators whose cases all pass, too")
    shown = parser.parse_args().all
    print("| operator | cases | convcore | ONNX Runtime | with older versions |")
    print("|---|---|---|---|---|")
    score_operators(shown)
    faults = score_stored_models()
    missing = {name: len(cases) for name, cases in sorted(cases_by_operator(missing=True).items())}
    print(
        f"operators that convcore has not, {sum(missing.values())} cases:",
        ", ".join(f"{name} {count}" for name, count in missing.items()),
    )
    print("models that fail here:", ", ".join(faults) or "none")
    return 0


if __name__ == "__main__":
    sys.exit(main())
