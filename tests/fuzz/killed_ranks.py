"""Kill or stop a random rank at a random moment; the others have to end, with an error of its name.

    python tests/fuzz/killed_ranks.py --count=50

Two to four ranks train what killed_runs.py trains, in shards. One gets SIGKILL or SIGSTOP within a
random step. All must have ended in time with an error that names the rank and the step, nothing may
be left running, the checkpoint must be whole, and a run of another number of ranks that goes on
from it must end in the bits of one process that nothing happened to. The exit code is 1 if one did
not.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import killed_runs

from convcore import distributed as dist
from convcore import load, nn
from convcore.distributed.faults import Progress

TIMEOUT = 1  # seconds that ranks wait for one another
# After the signal: the time limit, two seconds for answers, and what ending takes on busy cores.
LIMIT = TIMEOUT + 2 + 4
SIGNALS = ("SIGKILL", "SIGSTOP")


class Fault:
    """A signal that a rank gives itself, some seconds after a step has begun."""

    def __init__(self, text: str) -> None:
        name, rank, step, delay = text.split(",")
        self.name, self.rank, self.step, self.delay = name, int(rank), int(step), float(delay)

    def begin(self, folder: Path) -> None:
        """Have the signal come, and note when it does."""

        def come() -> None:
            (folder / "when").write_text(f"{time.time()} {Progress.step}")
            os.kill(os.getpid(), getattr(signal, self.name))

        threading.Timer(self.delay, come).start()


def train(folder: Path, fault: Fault | None) -> str:
    """Train in all ranks, of which one may get a signal."""
    dist.init_process_group("mpi", timeout=TIMEOUT if fault else 60)
    rank = dist.get_rank()
    (folder / f"{rank}.pid").write_text(str(os.getpid()))

    def backward_of(net: nn.Module):
        ddp = nn.parallel.DistributedDataParallel(net, shards=4)
        steps = iter(range(10**6))

        def backward(*arguments):
            if fault and (rank, next(steps)) == (fault.rank, fault.step):
                fault.begin(folder)
            return ddp.backward(*arguments)

        return backward

    return killed_runs.train(folder / "state.pt", "none", backward_of, saves=rank == 0)


def run(folder: Path, ranks: int, fault: str = "") -> subprocess.CompletedProcess:
    """Run so many ranks to their end."""
    beside = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    command = [beside or "mpiexec", "-n", str(ranks), sys.executable, __file__]
    settings = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": ""}
    return subprocess.run(
        [*command, f"--child={folder}", f"--fault={fault}"],
        env=os.environ | settings, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def digests(done: subprocess.CompletedProcess) -> set[str]:
    """Return what the ranks of a run that ended well printed."""
    if done.returncode:
        raise RuntimeError(done.stderr)
    return set(done.stdout.split())


def is_running(process: int) -> bool:
    """Return whether a process is there, and no zombie."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def faults_of(
    folder: Path, text: str, ranks: int, draw: random.Random, expected: set[str]
) -> list[str]:
    """Run, with a fault; return what did not go as it has to."""
    fault = Fault(text)
    done = run(folder, ranks, text)
    when, at = (folder / "when").read_text().split()
    seconds = time.time() - float(when)
    found = []
    if not done.returncode or seconds > LIMIT:
        found.append(f"ended with {done.returncode} after {seconds:.1f} s")
    step = f"(?:{at}|{int(at) + 1})"  # one may end between the note and the signal
    says = {
        "SIGKILL": rf"rank {fault.rank} of {ranks} died at step {step} ",
        "SIGSTOP": rf"at step {step}.*rank {fault.rank} does not answer",
    }
    if not re.search(says[fault.name], done.stderr):
        found.append("no error that names the rank and the step:\n" + done.stderr)
    processes = [int(file.read_text()) for file in folder.glob("*.pid")]
    time.sleep(0.2)
    if len(processes) != ranks or any(map(is_running, processes)):
        found.append(f"of {processes}, some still run")
    if (file := folder / "state.pt").exists():
        load(file)
    others = draw.choice([count for count in (1, 2, 3, 4) if count != ranks])
    if digests(run(folder, others)) != expected:
        found.append(f"{others} ranks went on to other bits")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=50, help="how many runs with a fault")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--fault", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(train(options.child, Fault(options.fault) if options.fault else None))
        return 0
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        expected = digests(run(Path(folder), 1))
    bad = 0
    for number in range(options.count):
        ranks = draw.randint(2, 4)
        text = f"{SIGNALS[number % 2]},{draw.randrange(ranks)},{draw.randrange(29)},"
        text += f"{draw.uniform(0, 0.01):.4f}"
        with tempfile.TemporaryDirectory() as folder:
            found = faults_of(Path(folder), text, ranks, draw, expected)
        bad += bool(found)
        if found:
            print(f"{text} of {ranks}:", *found, sep="\n", flush=True)
    print(f"{options.count} runs, {bad} not as they have to be; bits {sorted(expected)[0][:16]}")
    return bool(bad)


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.exit(main())
