"""Mutated checkpoints: read right, or refused by the documented error; nothing else happens.

    python tests/fuzz/checkpoints.py --count=100000 --format=archive

Formats are PyTorch's archive, its older stream, safetensors and npz; by default its first two.
Seeds are files as convcore and PyTorch write them.  Mutations know the formats: bytes anywhere in
the file; opcodes, names and numbers in the pickle of an archive that is whole otherwise; headers in
a file that is; pieces of other seeds; numbers in the archive's headers.  After each batch all that
the process has in common is compared with what it was before (`world`).  Each file must be read
within `SECONDS` and `MOST` bytes; every eighth, which is traced, within `FACTOR` times its bytes.
What is read of safetensors and npz must be what their own libraries read.  The exit code is 1 if
anything was found, which is printed with the options that make the file again.
"""

from __future__ import annotations

import argparse
import io
import pickle
import random
import struct
import sys
import time
import tracemalloc
import warnings
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import pickled
import tensor_files
import world

import convcore
from convcore import nn, optim
from convcore.serialization import CheckpointError

FACTOR = 500  # of a file's bytes, the memory that `load` says it takes
SLACK = 200_000  # bytes, for a traceback and zipfile's own
SECONDS = 5.0
BATCH = 2000
TRACED = 8  # every so many files one's memory is traced, which takes five times as long
MOST = 1 << 28  # bytes for any file, traced or not
WHOLE, PICKLE, OLDER = range(3)  # the first byte of an input of guided.py: what the rest is

OPCODES = [bytes([code]) for code in pickle._Unpickler.dispatch]  # type: ignore[attr-defined]
NUMBERS = [0, 1, 2, 3, 4, 7, 8, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1]
LONG = [2**63 - 1, 2**62, 2**60, 2**64 - 1, 2**40]
NAMES = [
    *[("torch", name) for name in ("FloatStorage", "float32", "Size", "Tensor", "device")],
    *[("torch._utils", name) for name in ("_rebuild_tensor_v2", "_rebuild_parameter")],
    ("torch._utils", "_rebuild_parameter_with_state"),
    ("torch._tensor", "_rebuild_from_type_v2"),
    ("torch.nn.parameter", "Parameter"),
    *[("collections", name) for name in ("OrderedDict", "Counter", "defaultdict", "deque")],
    *[("builtins", name) for name in ("set", "bytearray", "complex", "getattr", "setattr")],
    *[("builtins", name) for name in ("eval", "dict", "list", "object", "type", "globals")],
    ("_codecs", "encode"),
    ("copyreg", "_reconstructor"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "scalar"),
    ("torch._utils", "_rebuild_tensor_v3"),
    ("torch.storage", "UntypedStorage"),
    ("torch", "BFloat16Storage"),
    ("torch.serialization", "_get_layout"),
    ("builtins", "bytes"),
    ("convcore._tensor.tensor", "Tensor"),
    ("convcore.serialization.safe", "_allowed"),
]
SIZES = [0, 1, 1, 2, 2, 3, -1, 2**62, 2**31]
ATTRIBUTES = ["numpy", "numel", "update", "_array", "__class__", "__dict__", "_metadata", "load"]


def things() -> dict[str, Any]:
    """Return one of everything that a file may hold."""
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    adam = optim.Adam(net.parameters())
    net(convcore.ones(1, 1, 4, 4)).sum().backward()
    adam.step()
    note = nn.Parameter(convcore.ones(2))
    note.tag = "x"
    dtypes = [convcore.ones(2, dtype=getattr(convcore, name)) for name in ("int8", "complex64")]
    return {
        "net": net.state_dict(),
        "adam": adam.state_dict(),
        "more": [note, *dtypes, convcore.arange(24.0).view(2, 3, 4).transpose(0, 2), b"ab", {3}],
        "rest": (OrderedDict(a=(1, 2.5, None, 2**70)), Counter("aab"), 2j, bytearray(b"ab")),
        "kinds": [convcore.float64, convcore.Size([2, 3]), convcore.device("cpu"), frozenset()],
    }


def seeds(kind: str = "torch") -> list[bytes]:
    """Return files of a format: ours by pickle's protocols, and PyTorch's if it is there."""
    if kind in ("safetensors", "npz"):
        return tensor_files.seeds(kind)
    written = things()
    files = [_saved(written, pickle_protocol=protocol) for protocol in (2, 3, 4, 5)]
    files += [_saved(written[key]) for key in written]
    parts = pickled.value([1]) + pickled.tensor(0, (2, 2), (2, 1)) + pickle.TUPLE2
    bits = pickled.tensor(0, (2,), (1,), False, None, {"conj": True, "neg": True})
    files += [pickled.older(part).getvalue() for part in (parts, bits)]
    files += [pickled.checkpoint(part).getvalue() for part in (parts, bits)]
    if "torch" in sys.modules:
        files += _pytorchs(sys.modules["torch"])
    files += _scalars_and_bytes()
    archives = [content for content in files if content[:2] == b"PK"]
    streams = [content for content in files if content[:2] != b"PK"]
    return {"archive": archives, "stream": streams, "torch": files}[kind]


def _scalars_and_bytes() -> list[bytes]:
    """Return files of NumPy scalars, bfloat16, and storages without a type."""
    dtype = pickled.call(pickled.name("numpy", "dtype"), *map(pickled.value, ("f8", False, True)))
    dtype += pickled.value((3, "<", None, None, None, -1, -1, 0)) + pickle.BUILD
    scalar = pickled.name("numpy._core.multiarray", "scalar")
    bits = pickled.tensor(0, (4,), (1,), kind="BFloat16Storage", key="1")
    where = [pickled.value("storage"), pickled.name("torch.storage", "UntypedStorage")]
    where += [pickled.value(one) for one in ("0", "cpu", 16)]
    storage = pickle.MARK + b"".join(where) + pickle.TUPLE + pickle.BINPERSID
    rest = [pickled.value(one) for one in (0, (8,), (1,), False, None)]
    function = pickled.name("torch._utils", "_rebuild_tensor_v3")
    tensor = pickled.call(function, storage, *rest, pickled.name("torch", "uint16"))
    layout = pickled.name("torch.serialization", "_get_layout")
    parts = [pickled.call(scalar, dtype, pickled.value(b"abcdefgh")), bits, tensor]
    parts += [pickled.call(layout, pickled.value("torch.strided"))]
    body = pickle.MARK + b"".join(parts) + pickle.LIST
    storages = struct.pack("<q16xq8x", 16, 4)
    return [
        pickled.checkpoint(body, storages={"0": bytes(16), "1": bytes(8)}).getvalue(),
        pickled.older(body, keys=("0", "1"), storages=storages).getvalue(),
    ]


def _saved(value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    convcore.save(value, file, **options)
    return file.getvalue()


def _pytorchs(torch: Any) -> list[bytes]:
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))
    base = torch.arange(6.0)
    written = [net.state_dict(), base.view(2, 3).T, base[2:], torch.ones(2, dtype=torch.cfloat)]
    written.append(written[-1].conj())
    files = []
    for zipped in (True, False):
        file = io.BytesIO()
        torch.save(written, file, _use_new_zipfile_serialization=zipped)
        files.append(file.getvalue())
    return files


def _number(draw: random.Random) -> bytes:
    if draw.random() < 0.3:
        return struct.pack("<Q", draw.choice(LONG))
    return struct.pack(draw.choice(["<B", "<H", "<I", "<Q"])[:2], draw.choice(NUMBERS) % 256)


def _words(draw: random.Random) -> bytes:
    """Return opcodes that mean something together."""
    kind = draw.randrange(9)
    if kind == 0:
        return pickled.name(*draw.choice(NAMES))
    if kind == 1:
        return pickled.value({draw.choice(ATTRIBUTES): draw.choice(NUMBERS)}) + pickle.BUILD
    if kind == 2:
        return pickled.value((None, {draw.choice(ATTRIBUTES): 1})) + pickle.BUILD
    if kind == 3:
        sizes = [
            tuple(draw.choices([0, 1, 2, 3, -1, 2**62, 2**31], k=draw.randrange(3))) for _ in "ab"
        ]
        return pickled.tensor(draw.choice([0, 1, 4, -1, 2**62]), *sizes)
    if kind == 4:
        return pickled.call(pickled.name(*draw.choice(NAMES)), pickled.value(draw.choice(NUMBERS)))
    if kind == 5:
        return pickled.value(draw.choice([*NUMBERS, *LONG, -1, None, True, "0", b"x", (), [], {}]))
    if kind == 6:
        return draw.choice([pickle.BINGET, pickle.BINPUT]) + bytes([draw.randrange(40)])
    if kind == 7:
        return pickled.storage(draw.choice(["0", "1", 0]), count=draw.choice([4, 8, -1, 2**40]))
    return draw.choice(OPCODES)


def _mutate(content: bytes, other: bytes, draw: random.Random, words: bool) -> bytes:
    """Return bytes with some of them changed, left out, put in, or taken from elsewhere."""
    found = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 8])):
        start = draw.randrange(len(found) + 1)
        length = draw.choice([0, 0, 1, 1, 2, 4, 8, 30])
        kind = draw.randrange(12 if words else 5)
        if kind == 0:
            new = bytes([draw.randrange(256)])
        elif kind == 1:
            new = _number(draw)
        elif kind == 2:
            new = b""
        elif kind == 3:
            place = draw.randrange(len(other))
            new = other[place : place + draw.randrange(1, 60)]
        elif kind == 4:
            place = draw.randrange(len(found) + 1)
            new = bytes(found[place : place + draw.randrange(1, 60)])
        elif kind < 8:  # a number in its place
            start = found.find(draw.choice([b"K", b"J", b"M", b"h", b"q"]), start) + 1
            length, new = 1, bytes([draw.choice(NUMBERS) % 256])
        else:  # and mostly what leaves the stack as it was
            length = draw.choice([0, 0, 0, length])
            new = _words(draw) + draw.choice([b"0", b"0", b""])
        found[start : start + (length if kind else 1)] = new
    return bytes(found)


def _rezipped(content: bytes, other: bytes, draw: random.Random) -> bytes:
    """Mutate an archive's records, and write a whole archive of them."""
    file = io.BytesIO()
    method = draw.choice([zipfile.ZIP_STORED] * 5 + [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
    with zipfile.ZipFile(io.BytesIO(content)) as read, zipfile.ZipFile(file, "w", method) as new:
        for name in read.namelist():
            record, is_pickle = read.read(name), name.endswith(".pkl")
            if is_pickle or draw.random() < 0.05:
                record = _mutate(record, other, draw, is_pickle)
            if draw.random() > 0.01:
                new.writestr(name, record)
    return file.getvalue()


def draw_file(number: int, files: list[bytes], seed: int, kind: str = "torch") -> bytes:
    """Return the mutated file of a number."""
    draw = random.Random(f"{seed} {number}")
    content, other = draw.choice(files), draw.choice(files)
    if kind in ("safetensors", "npz"):
        return tensor_files.mutated(kind, content, draw)
    is_archive = content[:2] == b"PK"
    if is_archive and draw.random() < 0.75:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _rezipped(content, other, draw)
    return _mutate(content, other, draw, not is_archive)


def framed(content: bytes) -> bytes:
    """Return the file that an input of `guided.py` stands for."""
    kind, body = content[:1], content[1:]
    if kind == bytes([PICKLE]):
        return pickled.checkpoint(body).getvalue()
    return pickled.older(body).getvalue() if kind == bytes([OLDER]) else body


def check(
    content: bytes, load: Callable[[Any], Any] = convcore.load, kind: str = "torch"
) -> tuple[str, str]:
    """Read a file; return what happened, and what is wrong about that: memory, if it is traced."""
    is_traced = tracemalloc.is_tracing()
    before = _taken() if is_traced else 0
    start, wrong = time.perf_counter(), ""
    try:
        found, happened = load(io.BytesIO(content)), "read"
    except CheckpointError as error:
        happened = "refused"
        wrong = "" if str(error) else "says nothing"
    except Exception as error:  # any other is what is looked for
        happened, wrong = "error", repr(error)[:200]
    if is_traced:
        most = tracemalloc.get_traced_memory()[1] - before
        if most > FACTOR * len(content) + SLACK:
            wrong += f" took {most:,} bytes for {len(content):,}"
    if time.perf_counter() - start > SECONDS:
        wrong += " took too long"
    if happened == "read" and kind in ("safetensors", "npz") and not is_traced:
        wrong += tensor_files.differs(kind, content, found)
    return happened, wrong


def _taken() -> int:
    tracemalloc.reset_peak()
    return tracemalloc.get_traced_memory()[0]


def limit_memory() -> None:
    """Let no file take more than `MOST` bytes, traced or not: it would be a MemoryError."""
    if sys.platform == "linux":
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MOST
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


class Fuzzer:
    """Counts what happens to mutated files."""

    def __init__(self, seed: int, kind: str = "torch") -> None:
        self.seed, self.kind = seed, kind
        self.files = seeds(kind)
        self.counts: Counter[str] = Counter()
        self.found: list[str] = []
        for content in self.files:
            happened, wrong = check(content, kind=kind)
            is_closed = b"frozenset" in content  # by its name, in pickles of early protocols
            if wrong or (happened != "read" and not is_closed):
                self.found.append(f"a seed is not read: {happened} {wrong}")

    def run(self, start: int, stop: int) -> None:
        """Read the files of a range of numbers, and compare the world before and after."""
        before = world.look()
        for number in range(start, stop):
            content = draw_file(number, self.files, self.seed, self.kind)
            if number % TRACED == 0:
                tracemalloc.start()
            happened, wrong = check(content, kind=self.kind)
            tracemalloc.stop()
            self.counts[happened] += 1
            if wrong:
                options = f"--format={self.kind} --seed={self.seed} --only={number}"
                self.found.append(f"{options}: {wrong}")
        changed = world.changes(before, world.look())
        if changed:
            self.found.append(f"--seed={self.seed} {start} to {stop}: changed {changed[:5]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100_000, help="how many files")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--only", type=int, help="the file of one number, for a debugger")
    kinds = ("torch", "archive", "stream", "safetensors", "npz")
    parser.add_argument("--format", choices=kinds, default="torch", help="torch: archive, stream")
    parser.add_argument("--torch", action="store_true", help="seeds of PyTorch's too")
    options = parser.parse_args()
    if options.torch:
        import torch  # noqa: F401
    warnings.filterwarnings("ignore", "bfloat16 is read|Duplicate name")
    fuzzer = Fuzzer(options.seed, options.format)
    limit_memory()
    if options.only is not None:
        content = draw_file(options.only, fuzzer.files, options.seed, options.format)
        tracemalloc.start()
        print(check(content, kind=options.format), content)
        return 0
    for start in range(0, options.count, BATCH):
        fuzzer.run(start, min(start + BATCH, options.count))
        done = sum(fuzzer.counts.values())
        print(f"{done:,} files: {dict(fuzzer.counts)}, {len(fuzzer.found)} faults", flush=True)
    print("\n".join(fuzzer.found))
    return bool(fuzzer.found)


if __name__ == "__main__":
    sys.exit(main())
