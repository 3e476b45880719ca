"""The ONNX standard's cases that pass, operator by operator, beside ONNX Runtime in the same run.

    python tests/onnx/scores.py           what is not all passed, and the totals
    python tests/onnx/scores.py --all     every operator

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

from onnx_standard import cases_by_operator, fault

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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="operators whose cases all pass, too")
    shown = parser.parse_args().all
    totals = np.zeros(4, int)
    print("| operator | cases | convcore | ONNX Runtime | with older versions |")
    print("|---|---|---|---|---|")
    for name, cases in sorted(cases_by_operator().items()):
        row = [len(cases)]
        with np.errstate(all="ignore"):
            mine, other = ([not fault(case, by) for case in cases] for by in (ours, theirs))
            older = [
                passed or not fault(case, stamped)
                for case, passed in zip(cases, other, strict=True)
            ]
        row += [sum(mine), sum(other), sum(older)]
        totals += row
        if shown or row[1] < row[0]:
            print("|", " | ".join(map(str, [name, *row])), "|", flush=True)
    print("|", " | ".join(map(str, ["all", *totals])), "|")
    return 0


if __name__ == "__main__":
    sys.exit(main())
