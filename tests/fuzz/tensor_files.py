"""Seeds, mutations and an oracle of safetensors and npz files, for `checkpoints.py`."""

from __future__ import annotations

import contextlib
import io
import json
import random
import warnings
import zipfile
from typing import Any

import numpy as np

import convcore
from convcore import nn

WORDS = [b"0", b"1", b"-1", b"18446744073709551616", b"1e9", b"null", b"[]", b"{}", b'"F32"']
WORDS += [b'"BF16"', b'"F8_E4M3"', b'"I64"', b'"__metadata__"', b'"shape"', b"[0,0]", b"[" * 2000]
WORDS += [b"true", b'"a"', b"9" * 5000, b"\xff", b'"\\ud800"']
HEADERS = [b"|O", b"<f4", b">f8", b"|V8", b"<U9", b"True", b"(2,)", b"(1e9,)", b"(-1,)", b"()"]
HEADERS += [b"(9999999999,)", b"'shape'", b"'descr'", b"(((((", b"\x93NUMPY\x03\x00", b"|b1", b"+"]


def seeds(kind: str) -> list[bytes]:
    """Return files of a format."""
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(2, 2), nn.Linear(2, 2))
    net[3].weight = net[2].weight
    dtypes = ("bool", "uint8", "int16", "float16", "float64", "complex64")
    more = {name: convcore.ones(3, dtype=getattr(convcore, name)) for name in dtypes}
    more |= {"scalar": convcore.tensor(3), "empty": convcore.zeros(0, 2)}
    files = []
    for written in (net.state_dict(), more, {}):
        file = io.BytesIO()
        convcore.save(written, file, format=kind, metadata={"epoch": "3"})
        files.append(file.getvalue())
    if kind == "npz":
        file = io.BytesIO()
        np.savez_compressed(file, a=np.arange(12.0).reshape(3, 4).T, b=np.ones(2, ">i4"))
        files.append(file.getvalue())
    else:
        bits = {"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}
        files.append(_framed(json.dumps(bits).encode(), b"\x80\x3f\x00\x40"))
    return files


def _framed(header: bytes, memory: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + memory


def _changed(content: bytes, draw: random.Random, words: list[bytes]) -> bytes:
    """Change, leave out, repeat or put in some bytes, or a word."""
    found = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 3])):
        start = draw.randrange(len(found) + 1)
        stop = min(start + draw.choice([0, 1, 1, 2, 4, 8, 30]), len(found))
        other = draw.randrange(len(found) + 1)
        number = draw.choice([0, 1, 9, 2**15, 2**31, 2**62, 2**64 - 1])
        found[start:stop] = draw.choice(
            [
                *(bytes([draw.randrange(256)]), str(number).encode(), number.to_bytes(8, "little")),
                *(draw.choice(words), found[other : other + draw.randrange(60)], b""),
            ]
        )
    return bytes(found)


def mutated(kind: str, content: bytes, draw: random.Random) -> bytes:
    """Return a file that is changed anywhere, or in one part while the rest of it is whole."""
    if draw.random() < 0.3:
        return _changed(content, draw, WORDS if kind == "safetensors" else HEADERS)
    return (_safetensors if kind == "safetensors" else _npz)(content, draw)


def _safetensors(content: bytes, draw: random.Random) -> bytes:
    end = 8 + int.from_bytes(content[:8], "little")
    header, memory = content[8:end], content[end:]
    if draw.random() < 0.5:
        return _framed(_changed(header, draw, WORDS), memory)
    entries = json.loads(header)
    for _ in range(draw.choice([1, 1, 2])):
        entry = entries[draw.choice(list(entries))]
        key = draw.choice(list(entry))
        value: Any = entry[key]
        if isinstance(value, list) and value and draw.random() < 0.8:
            value[draw.randrange(len(value))] += draw.choice([-1, 1, 4, 8, 2**62, -(2**40)])
        else:
            entry[key] = draw.choice([0, [], [0, 0], [2], "F32", "I8", "F64", None, value, "a"])
    if draw.random() < 0.2:
        memory += bytes(draw.randrange(1, 9))
    return _framed(json.dumps(entries).encode(), memory)


def _npz(content: bytes, draw: random.Random) -> bytes:
    file = io.BytesIO()
    method = draw.choice([zipfile.ZIP_STORED] * 3 + [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
    with (
        zipfile.ZipFile(io.BytesIO(content)) as read,
        zipfile.ZipFile(file, "w", method) as new,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # of names that are there twice
        for name in read.namelist():
            entry = read.read(name)
            if draw.random() < 0.3:
                end = min(len(entry), 128)
                entry = _changed(entry[:end], draw, HEADERS) + entry[end:]
            if draw.random() > 0.05:
                new.writestr(name, entry)
            if draw.random() < 0.02:
                new.writestr(draw.choice([name, "x.npy", "archive/data.pkl", ".npy"]), entry)
    return file.getvalue()


def differs(kind: str, content: bytes, found: Any) -> str:
    """Return how what was read differs from what the format's own library reads, if it does."""
    if type(found) is not dict:
        return f" read a {type(found).__name__}"
    theirs = _theirs(kind, content)
    for name, array in theirs.items():
        ours = found[name].numpy() if name in found else None
        if ours is None or ours.shape != array.shape or ours.tobytes() != array.tobytes():
            return f" read {name!r:.50} wrong"
    return ""


def _theirs(kind: str, content: bytes) -> dict[str, np.ndarray]:
    if kind == "npz":
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files if name != "__metadata__"}
        return {name: array.astype(array.dtype.newbyteorder("=")) for name, array in arrays.items()}
    import safetensors.numpy

    with contextlib.suppress(KeyError):  # bfloat16, which it does not read everywhere
        return safetensors.numpy.load(content)
    return {}
