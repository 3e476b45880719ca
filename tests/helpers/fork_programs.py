"""Run programs on PyTorch, each in a fork of this process, which has loaded it once.

Reads lines of a program's path and its output's, runs the program, and writes its exit status.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback

import torch


def run(program: str, output: str) -> None:
    """Run a program in this process, its output going to a file, and end the process."""
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(1, 2)
    status = 0
    try:
        runpy.run_path(program, run_name="__main__")
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    os._exit(status)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            run(*line.rstrip("\n").split("\t"))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
