"""Handles of hooks: the same tests for convcore and, where it is installed, for PyTorch."""

import copy
import gc
import pickle
import threading
import weakref
from collections import OrderedDict

import pytest

from convcore.autograd.handle import RemovableHandle as Handle
from convcore.utils import hooks


@pytest.fixture(params=["convcore", "torch"])
def RemovableHandle(request):
    if request.param == "convcore":
        return Handle
    return pytest.importorskip("torch").utils.hooks.RemovableHandle


def put(handle_class, hooks_dict, hook="hook", **extra):
    handle = handle_class(hooks_dict, **extra)
    hooks_dict[handle.id] = hook
    return handle


def test_ids_grow_over_all_dictionaries(RemovableHandle):
    first, second = put(RemovableHandle, OrderedDict()), put(RemovableHandle, OrderedDict())
    assert second.id == first.id + 1
    assert RemovableHandle.next_id == second.id + 1


def test_ids_of_many_threads_differ():
    shared = OrderedDict()

    def register():
        for _ in range(300):
            put(Handle, shared)

    threads = [threading.Thread(target=register) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(shared) == 1200


def test_remove_takes_one_hook_and_may_be_repeated(RemovableHandle):
    shared = OrderedDict()
    first, second = put(RemovableHandle, shared, "a"), put(RemovableHandle, shared, "b")
    first.remove()
    first.remove()
    assert list(shared.values()) == ["b"]
    second.remove()
    assert not shared


@pytest.mark.parametrize("several", [False, True])
def test_remove_clears_the_extra_dictionaries(RemovableHandle, several):
    shared, marks = OrderedDict(), OrderedDict()
    handle = put(RemovableHandle, shared, extra_dict=[marks] if several else marks)
    marks[handle.id] = True
    handle.remove()
    assert not shared and not marks


def test_handle_refers_weakly_to_its_dictionary(RemovableHandle):
    class Hooks(OrderedDict):
        pass

    shared = Hooks()
    gone = weakref.ref(shared)
    handle = put(RemovableHandle, shared)
    assert handle.hooks_dict_ref() is shared
    gc.disable()
    try:
        del shared
        assert gone() is None and handle.hooks_dict_ref() is None
        handle.remove()
    finally:
        gc.enable()


def test_context_removes_at_its_end(RemovableHandle):
    shared = OrderedDict()
    with put(RemovableHandle, shared) as handle:
        assert list(shared) == [handle.id]
    assert not shared


def test_context_removes_after_an_error(RemovableHandle):
    shared = OrderedDict()
    with pytest.raises(KeyError), put(RemovableHandle, shared):
        raise KeyError
    assert not shared


def test_state_is_dictionary_id_and_extra(RemovableHandle):
    shared, marks = OrderedDict(), OrderedDict()
    handle = put(RemovableHandle, shared, extra_dict=marks)
    assert handle.__getstate__() == (shared, handle.id, (marks,))


@pytest.mark.parametrize(
    "twin", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))], ids=["copy", "pickle"]
)
def test_pickled_handle_removes_from_the_pickled_dictionary(RemovableHandle, twin):
    shared, marks = OrderedDict(), OrderedDict()
    handle = put(RemovableHandle, shared, extra_dict=marks)
    marks[handle.id] = True
    shared_twin, marks_twin, handle_twin = twin((shared, marks, handle))
    handle_twin.remove()
    assert not shared_twin and not marks_twin
    assert list(shared) == list(marks) == [handle.id]


def test_handle_pickled_alone_is_dead(RemovableHandle):
    handle = put(RemovableHandle, OrderedDict())
    alone = pickle.loads(pickle.dumps(handle))
    assert alone.hooks_dict_ref() is None and alone.id == handle.id
    alone.remove()


def test_unpickling_moves_the_next_id_past_the_handle(RemovableHandle):
    shared = OrderedDict()
    handle = put(RemovableHandle, shared)
    handle.id += 100
    pickle.loads(pickle.dumps((shared, handle)))
    assert RemovableHandle(shared).id == handle.id + 1


def test_handle_whose_extra_dictionary_is_gone_is_pickled():
    shared, marks = OrderedDict(), OrderedDict()
    handle = put(Handle, shared, extra_dict=marks)
    del marks
    shared, handle = pickle.loads(pickle.dumps((shared, handle)))
    handle.remove()
    assert not shared


def test_unserializable_hook_returns_the_marked_function():
    def hook(grad):
        return None

    assert hooks.unserializable_hook(hook) is hook
    assert hook.__torch_unserializable__


def test_utils_hooks_has_the_handle():
    assert hooks.RemovableHandle is Handle
