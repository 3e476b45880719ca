"""The long form of all that lies here, in one command.

    python tests/fuzz                        # a night on two cores; --share=0.01 is a look at it
    python tests/fuzz --only=programs,kills --seed=7

Each line is one script, its exit code, its seconds and the last line that it printed; all of it is
in a file beside the others in the folder that is named first.  What needs a package that is not
here is left out, and said.  The exit code is 1 if a script's was not 0.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
# (script, its options; a number that is written with underscores is scaled by --share)
LONG = (
    "checkpoints.py --torch --count=100_000 --seed={seed}",
    "checkpoints.py --format=safetensors --count=40_000 --seed={seed}",
    "checkpoints.py --format=npz --count=40_000 --seed={seed}",
    "onnx_files.py --count=40_000 --seed={seed}",
    "onnx_graphs.py --count=20_000 --seed={seed}",
    "onnx_resampling.py --count=50_000 --seed={seed}",
    "guided.py {folder}/checkpoints -runs=1_000_000 -max_len=4096",
    "guided_engine.py {folder}/engine -runs=1_000_000 -max_len=256",
    "functions.py --calls=100_000 --start={seed}000000",
    "functions.py --calls=100_000 --start={seed}000000 --integers",
    "far_integers.py",
    "wrong_types.py",
    "on_meta.py --calls=1_00",
    "in_place.py --tries=4_00",
    "far_values.py --tries=1_00",
    "programs.py --count=10_000 --seed={seed}000000",
    "forking_threads.py --count=2_000 --imports=1_00 --seed={seed}",
    "kills.py --count=3_00 --seed={seed}",
    "killed_runs.py --count=1_00 --seed={seed}",
    "killed_ranks.py --count=5_0 --seed={seed}",
    "interrupts.py --count=1_000 --seed={seed}",
    "instruction_interrupts.py --most=10_00 --seed={seed}",
    "memory.py --long",
    "growth.py --iterations=10_000",
)
NEEDS = {
    **{"guided.py": "atheris", "guided_engine.py": "atheris", "programs.py": "torch"},
    **{"onnx_files.py": "onnx", "onnx_graphs.py": "onnx", "killed_ranks.py": "mpi4py"},
    "onnx_resampling.py": "onnxruntime",
}


def commands(folder: Path, seed: int, share: float, only: str) -> list[list[str]]:
    """Return the command lines of the scripts that can be run here."""
    found = []
    for line in LONG:
        script, *options = line.format(folder=folder, seed=seed).split()
        need = NEEDS.get(script)
        if only and script.removesuffix(".py") not in only.split(","):
            continue
        if need is not None and importlib.util.find_spec(need) is None:
            print(f"{script}: needs {need}, which is not here", flush=True)
            continue
        found.append([script, *(_scaled(one, share) for one in options)])
    return found


def _scaled(option: str, share: float) -> str:
    def number(found: re.Match) -> str:
        return str(max(1, round(int(found[0]) * share)))

    return re.sub(r"(?<==)\d+(_\d+)+$", number, option)


def run(command: list[str], log: Path) -> int:
    """Run a script, tell how it ended, and return its exit code."""
    begin = time.monotonic()
    with log.open("w") as written:
        code = subprocess.run(
            [sys.executable, str(HERE / command[0]), *command[1:]],
            stdout=written,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            check=False,
        ).returncode
    last = log.read_text(errors="replace").strip().rpartition("\n")[2]
    seconds = time.monotonic() - begin
    print(f"{' '.join(command)}\n    exit code {code}, {seconds:.0f} s: {last[:200]}", flush=True)
    return code


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the numbers of tries")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--only", default="", help="names of scripts, separated by commas")
    parser.add_argument("--jobs", type=int, default=2, help="how many scripts run at a time")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    print(folder, flush=True)
    chosen = commands(folder, options.seed, options.share, options.only)
    logs = [folder / f"{number}-{command[0]}.txt" for number, command in enumerate(chosen)]
    with ThreadPoolExecutor(options.jobs) as pool:
        codes = list(pool.map(run, chosen, logs))
    print(f"{len(codes)} scripts, {sum(map(bool, codes))} failed")
    return any(codes)


if __name__ == "__main__":
    sys.exit(main())
