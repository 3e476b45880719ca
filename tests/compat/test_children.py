"""`torch` in processes that do not inherit it."""

import multiprocessing
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import torch
import torch.multiprocessing
from torch.utils.data import DataLoader, TensorDataset

def put(queue):
    queue.put((torch.__name__, torch.arange(3).sum().item()))

if __name__ == "__main__":
    context = torch.multiprocessing.get_context(sys.argv[1])
    queue = context.Queue()
    child = context.Process(target=put, args=(queue,))
    child.start()
    print(queue.get(timeout=60))
    child.join()
    numbers = TensorDataset(torch.arange(4))
    batches = DataLoader(numbers, 2, num_workers=1, multiprocessing_context=context)
    print([batch.tolist() for batch, in batches])
"""


@pytest.mark.subprocess
@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_children_of_a_program_find_torch(method, tmp_path):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system does not {method}")
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-P", "-m", "convcore", "run", "program.py", method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.stderr == "" and done.returncode == 0
    assert done.stdout == "('torch', 3)\n[[0, 1], [2, 3]]\n"


@pytest.mark.subprocess
def test_nothing_is_prepared_where_the_door_is_closed(run_child):
    out = run_child("""if True:
    from multiprocessing import spawn
    from convcore.compat import as_torch

    with as_torch():
        print("convcore" in spawn.get_preparation_data("child"))
    print("convcore" in spawn.get_preparation_data("child"))
    """)
    assert out.split() == ["True", "False"]
