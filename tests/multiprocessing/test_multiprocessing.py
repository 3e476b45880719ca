"""Processes: Python's multiprocessing with tensors in shared memory, and spawn."""

import copy
import multiprocessing
import os
import pickle

import pytest
from process_targets import add_one, add_to, echo, fail, put_rank

import convcore
import convcore.multiprocessing as mp
from convcore import nn

pytestmark = [
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.skipif(os.name == "nt", reason="memory is not shared there"),
]
METHODS = ("fork", "spawn", "forkserver")


def run(method, target, *args):
    """Run a function in a process to its end."""
    process = mp.get_context(method).Process(target=target, args=args)
    process.start()
    process.join(60)
    assert process.exitcode == 0


@pytest.mark.parametrize("method", METHODS)
def test_shared_memory_is_the_same_in_all_processes(method):
    net = nn.Linear(2, 3).share_memory()
    weight = net.weight.detach().clone()
    tensor = convcore.zeros(2, 3, 4, 5).to(memory_format=convcore.channels_last).share_memory_()
    assert tensor.is_shared() and tensor.is_contiguous(memory_format=convcore.channels_last)
    run(method, add_to, net, tensor)
    assert convcore.equal(net.weight, weight + 1)
    assert tensor[0, 0, 0, 1] == 7 and tensor.sum() == 7


def test_other_memory_is_copied():
    tensor = convcore.zeros(2)
    run("fork", add_one, tensor)
    assert tensor.tolist() == [0, 0] and not tensor.is_shared()


@pytest.mark.parametrize("method", METHODS[:2])
def test_tensors_go_through_queues(method):
    context = mp.get_context(method)
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=echo, args=(queue, answers), daemon=True)
    process.start()
    mine = convcore.ones(3).share_memory_()
    queue.put(mine)
    found, is_shared = answers.get(timeout=60)
    assert found.tolist() == [2, 2, 2] == mine.tolist() and is_shared
    found[0] = 5
    assert mine[0] == 5
    for sent in (convcore.ones(2, 3).T, convcore.tensor(4), convcore.zeros(0, 2)):
        queue.put(sent)
        found, is_shared = answers.get(timeout=60)
        assert convcore.equal(found, sent * 2) and not is_shared
    queue.put(None)
    process.join(60)


def test_views_of_shared_memory_go_with_their_place():
    tensor = convcore.arange(6.0).view(2, 3).share_memory_()
    for view in (tensor[1], tensor[:, 1:], tensor.T):
        run("spawn", add_one, view) if view.shape == (3,) else run("fork", add_one, view)
    assert tensor.tolist() == [[1, 3, 4], [5, 7, 8]]


def test_sharing_keeps_the_tensor_and_is_done_once():
    tensor = convcore.tensor([1.5, 2.5], requires_grad=True)
    assert tensor.share_memory_() is tensor and tensor.requires_grad
    address = tensor.data_ptr()
    assert tensor.share_memory_().data_ptr() == address and tensor.tolist() == [1.5, 2.5]
    (tensor * 2).sum().backward()
    assert tensor.grad.tolist() == [2, 2]


def test_pickles_and_copies_hold_the_values():
    tensor = convcore.arange(6.0).view(2, 3).share_memory_()
    for other in (pickle.loads(pickle.dumps(tensor)), copy.deepcopy(tensor), tensor.clone()):
        assert convcore.equal(other, tensor) and not other.is_shared()


# spawn


def test_spawn_runs_the_function_with_each_number():
    tensor = convcore.zeros(2).share_memory_()
    assert mp.spawn(put_rank, (tensor,), nprocs=2) is None
    assert tensor.tolist() == [1, 2]


@pytest.mark.parametrize("how", ["raise", "exit", "kill"])
def test_failures_are_those_of_pytorch(torch, how):
    errors = []
    for library in (convcore, torch):
        kinds = library.multiprocessing.ProcessRaisedException.__bases__
        with pytest.raises(kinds) as raised:
            library.multiprocessing.start_processes(fail, (how,), nprocs=2, start_method="fork")
        error = raised.value
        fields = error.error_index, getattr(error, "exit_code", 0), getattr(error, "signal_name", 0)
        lines = str(error).split("\n")
        errors.append((type(error).__name__, fields, lines[:4], lines[-2:]))
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert errors[0] == errors[1]


def test_join_may_be_left_to_the_caller():
    tensor = convcore.zeros(2).share_memory_()
    context = mp.start_processes(put_rank, (tensor,), 2, join=False, start_method="fork")
    assert len(context.pids()) == 2
    assert any(context.join(timeout=60) for _ in range(3))
    assert context.join() and tensor.tolist() == [1, 2]


def test_spawn_only_spawns():
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        mp.spawn(put_rank, nprocs=0, start_method="fork")


def test_everything_of_pythons_module_is_there():
    assert set(multiprocessing.__all__) <= set(dir(mp))
    assert mp.Queue == multiprocessing.Queue and mp.queues is multiprocessing.queues
    with pytest.raises(AttributeError, match="nothing_such"):
        mp.nothing_such  # noqa: B018


def test_sharing_strategies_are_pytorchs(torch):
    assert mp.get_all_sharing_strategies() == torch.multiprocessing.get_all_sharing_strategies()
    assert mp.get_sharing_strategy() == "file_descriptor"
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(AssertionError, match="invalid sharing strategy 'bad'"):
        mp.set_sharing_strategy("bad")
