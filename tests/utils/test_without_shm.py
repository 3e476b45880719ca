"""Worker processes and shared tensors where the system has no /dev/shm, as in small containers."""

import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.subprocess

PROGRAM = """
import os
import convcore
from convcore.utils.data import DataLoader

class Numbers:
    def __len__(self):
        return 8
    def __getitem__(self, index):
        return convcore.full((3,), float(index))

if __name__ == "__main__":
    assert not os.access("/dev/shm", os.W_OK)
    for method in ("fork", "spawn"):
        loader = DataLoader(Numbers(), batch_size=2, num_workers=2, multiprocessing_context=method)
        assert [batch.sum().item() for batch in loader] == [3, 15, 27, 39]
    assert convcore.ones(3).share_memory_().is_shared()
    print("right")
"""
ALONE = ["unshare", "--mount"]
WITHOUT = 'umount -l /dev/shm; mount -t tmpfs -o ro none /dev/shm && exec "$@"'


def can_hide_it():
    if shutil.which("unshare") is None:
        return False
    tried = [*ALONE, "sh", "-c", WITHOUT, "sh", "true"]
    return subprocess.run(tried, capture_output=True, timeout=60, check=False).returncode == 0


def test_workers_and_shared_tensors_need_no_dev_shm(tmp_path):
    if not can_hide_it():
        pytest.skip("needs the right to mount, as root has")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [*ALONE, "sh", "-c", WITHOUT, "sh", sys.executable, "-P", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "right\n"
