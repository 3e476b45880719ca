"""Why tests were skipped or left out, how many for each reason, and the command that runs them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

NOTHING = "no command: there is no such case here"
LONG = "the long forms, left out unless asked for"

# What a reason's text says is missing, by the pattern's own words or its first group.
_MISSING = (
    re.compile(r"could not import '([\w.]+)'"),
    re.compile(r"([\w.]+) is not installed"),
    re.compile(r"needs ([Pp]y[Tt]orch|mypy|onnx\w*|rich|matplotlib)$"),
)
# The name of what pip installs, where that is not the module's.
_DISTRIBUTIONS = {
    "torch": "torch==2.13.0",
    "pytorch": "torch==2.13.0",
    "pytorch_grad_cam": "--no-deps grad-cam ttach tqdm",
    "rapidocr_onnxruntime": "--no-deps rapidocr-onnxruntime==1.4.4",
    "sklearn": "scikit-learn",
    **{name: f"--no-deps {name} tqdm" for name in ("captum", "torchcam", "torchinfo", "thop")},
    **{name: f"--no-deps {name}" for name in ("einops", "ptflops", "torchdiffeq", "zennit")},
    "gpytorch": "--no-deps gpytorch linear-operator jaxtyping wadler-lindig",
    "ignite": "--no-deps pytorch-ignite",
    "kornia": "--no-deps kornia kornia-rs",
    "opacus": "--no-deps opacus opt-einsum",
    "pytorch_lightning": "--no-deps pytorch-lightning torchmetrics lightning-utilities fsspec",
    "torchmetrics": "--no-deps torchmetrics lightning-utilities",
    "torchvision": "--no-deps torchvision pillow",
    "torchviz": "--no-deps torchviz graphviz",
    "cv2": "opencv-python-headless",
    "tensorboardx": "tensorboardX",
}
_COMMANDS = (
    (LONG, "pytest --long-cases=100"),
    ("test a wheel", "pytest, in a checkout"),
    ("in the source tree only", "pytest, in a checkout"),
    ("developers may test their checkout", "CI=1 pytest, on an installed wheel"),
    ("built without OpenMP", "pytest, after a build with OpenMP"),
    ("root may write anything", "pytest, not as root"),
)


def command_of(reason: str) -> str:
    """Return the command that runs what was skipped for a reason."""
    for pattern in _MISSING:
        if found := pattern.search(reason):
            module = found[1].lower().partition(".")[0]
            return f"pip install {_DISTRIBUTIONS.get(module, module)} && pytest"
    return next((command for words, command in _COMMANDS if words in reason), NOTHING)


def plain_reason(text: str) -> str:
    """Return a skip's reason without pytest's words around it."""
    text = text.removeprefix("Skipped: ").partition("\n")[0]
    return re.sub(r"^(could not import '[\w.]+').*", r"\1", text)


def summary(reasons: Iterable[str]) -> Iterator[str]:
    """Yield a line a command, the most tests first, and below it a line a reason."""
    by_command: dict[str, Counter[str]] = {}
    for text in reasons:
        reason = plain_reason(text)
        by_command.setdefault(command_of(reason), Counter())[reason] += 1
    for command, counts in sorted(by_command.items(), key=lambda pair: -pair[1].total()):
        yield f"{counts.total():6}  {command}"
        for reason, count in counts.most_common():
            yield f"        {count:6}  {reason}"
