"""The guide's lists of what can be exported are those of the translations."""

import re
import textwrap
from pathlib import Path

import pytest

import convcore
from convcore import Tensor, nn
from convcore.nn import functional as F

pytest.importorskip("onnx", reason="needs onnx: pip install 'convcore[onnx]'")

import convcore.onnx.recording
from convcore.onnx.recurrences import LAYERS
from convcore.onnx.translation import TRANSLATIONS

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "onnx.rst"
ROOMS = {"torch": convcore, "torch.nn.functional": F, "Tensor": Tensor}


def _is_whole(kind):
    return isinstance(kind, type) and getattr(kind, "forward", None) in LAYERS


def paragraphs():
    """Return a paragraph for each room, with the functions that none before has."""
    left, found = set(TRANSLATIONS), []
    for title, room in ROOMS.items():
        own = sorted(name for name in left if name in dir(room) and callable(getattr(room, name)))
        left -= set(own)
        shown = [re.sub(r"_$", r"\\_", name) for name in own]  # a name with _ is a link
        found.append(f"- ``{title}``: {', '.join(shown)};")
    layers = sorted(name for name, kind in vars(nn).items() if _is_whole(kind))
    found.append(f"- whole layers: {', '.join(layers)}.")
    return [textwrap.fill(each, 120, subsequent_indent="  ") for each in found]


def test_the_lists_are_those_of_the_translations():
    text = GUIDE.read_text()
    for paragraph in paragraphs():
        assert paragraph in text, f"docs/howto/onnx.rst lacks:\n{paragraph}"
