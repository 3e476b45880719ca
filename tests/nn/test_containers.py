"""Containers of modules and of parameters; each test with `lib` runs on convcore and on PyTorch."""

from __future__ import annotations

import re
from collections import OrderedDict

import pytest


def step(lib, number):
    """Return a module that appends its digit to a number."""

    class Step(lib.nn.Module):
        def forward(self, x):
            return x * 10 + number

        def extra_repr(self):
            return str(number)

    return Step()


def steps(lib, count):
    return [step(lib, number) for number in range(1, count + 1)]


def parameter(lib, *values):
    return lib.nn.Parameter(lib.tensor(values))


def plain(values):
    return [value.tolist() if hasattr(value, "tolist") else value for value in values]


# Sequential


def test_sequential_calls_one_after_the_other(lib):
    assert lib.nn.Sequential(*steps(lib, 3))(0) == 123
    assert lib.nn.Sequential()(5) == 5


def test_sequential_takes_names(lib):
    first, second = steps(lib, 2)
    net = lib.nn.Sequential(OrderedDict([("a", first), ("b", second)]))
    assert net.a is first and net[-1] is second and net(0) == 12
    assert repr(net) == "Sequential(\n  (a): Step(1)\n  (b): Step(2)\n)"
    assert list(net[1:]._modules) == ["b"]


def test_sequential_is_indexed_and_sliced(lib):
    net = lib.nn.Sequential(*steps(lib, 4))
    assert net[0](0) == 1 and net[-1](0) == 4 and len(net) == 4
    assert type(net[1:3]) is lib.nn.Sequential and net[1:3](0) == 23
    assert list(net[1:3]._modules) == ["1", "2"]
    assert [part(0) for part in net] == [1, 2, 3, 4]


@pytest.mark.parametrize("index", [4, -5])
@pytest.mark.parametrize("kind", ["Sequential", "ModuleList"])
def test_index_beyond_the_ends_raises(lib, kind, index):
    parts = steps(lib, 4)
    net = lib.nn.Sequential(*parts) if kind == "Sequential" else lib.nn.ModuleList(parts)
    with pytest.raises(IndexError, match=f"index {index} is out of range"):
        net[index]
    with pytest.raises(IndexError):
        net[index] = step(lib, 5)
    with pytest.raises(IndexError):
        del net[index]


def test_sequential_is_changed_like_a_list(lib):
    net = lib.nn.Sequential(*steps(lib, 3))
    net[1] = step(lib, 9)
    assert net(0) == 193
    del net[0]
    assert net(0) == 93 and list(net._modules) == ["0", "1"]
    assert net.append(step(lib, 5)) is net
    assert net.insert(0, step(lib, 7)) is net
    assert net.insert(-1, step(lib, 8)) is net
    assert net(0) == 79385
    assert net.extend(steps(lib, 2)) is net
    assert net(0) == 7938512
    assert net.pop(0)(0) == 7 and net(0) == 938512
    del net[1:4]
    assert net(0) == 912 and list(net._modules) == ["0", "1", "2"]
    assert net.pop(slice(0, 2))(0) == 91 and net(0) == 2


def test_sequential_insert_leaves_names(lib):
    net = lib.nn.Sequential()
    net.add_module("first", step(lib, 1))
    net.append(step(lib, 2)).insert(1, step(lib, 3))
    assert list(net._modules) == ["first", "1", "2"] and net(0) == 132


def test_sequential_insert_beyond_the_ends_raises(lib):
    with pytest.raises(IndexError, match="Index out of range: 3"):
        lib.nn.Sequential(*steps(lib, 2)).insert(3, step(lib, 1))
    with pytest.raises(AssertionError, match="module should be of type"):
        lib.nn.Sequential(*steps(lib, 2)).insert(0, [step(lib, 1)])


def test_sequentials_are_added(lib):
    net, other = lib.nn.Sequential(*steps(lib, 2)), lib.nn.Sequential(step(lib, 7))
    assert (net + other)(0) == 127 and net(0) == 12
    same = net
    net += other
    assert net is same and net(0) == 127
    with pytest.raises(ValueError, match="add operator supports only objects of Sequential class"):
        net + 5


def test_sequential_is_multiplied(lib):
    net = lib.nn.Sequential(*steps(lib, 2))
    assert (net * 2)(0) == (2 * net)(0) == 1212 and net(0) == 12
    assert (net * 2)[2] is net[0]
    net *= 3
    assert net(0) == 121212
    with pytest.raises(TypeError, match=re.escape("unsupported operand type(s) for *")):
        net * "2"
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0"):
        net * 0


def test_sequential_subclass_keeps_its_class_in_slices(lib):
    class Own(lib.nn.Sequential):
        pass

    assert type(Own(*steps(lib, 3))[:2]) is Own


# ModuleList, ModuleDict


def test_module_list_is_a_list_of_members(lib):
    net = lib.nn.ModuleList(steps(lib, 3))
    assert [part(0) for part in net] == [1, 2, 3] and len(net) == 3
    assert [name for name, _ in net.named_children()] == ["0", "1", "2"]
    assert type(net[1:]) is lib.nn.ModuleList and list(net[1:]._modules) == ["0", "1"]
    net.append(step(lib, 4)).insert(0, step(lib, 0))
    net[-1] = step(lib, 9)
    net += [step(lib, 5)]
    assert [part(0) for part in net] == [0, 1, 2, 3, 9, 5]
    assert [part(0) for part in net + steps(lib, 1)] == [0, 1, 2, 3, 9, 5, 1]
    del net[1:3]
    assert net.pop(0)(0) == 0
    assert [part(0) for part in net] == [3, 9, 5] and list(net._modules) == ["0", "1", "2"]


def test_module_list_prints_equal_neighbours_once(lib):
    net = lib.nn.ModuleList([step(lib, 1), step(lib, 1), step(lib, 2)])
    net.append(lib.nn.Sequential(step(lib, 3)))
    assert repr(net) == (
        "ModuleList(\n"
        "  (0-1): 2 x Step(1)\n"
        "  (2): Step(2)\n"
        "  (3): Sequential(\n"
        "    (0): Step(3)\n"
        "  )\n"
        ")"
    )
    assert repr(lib.nn.ModuleList()) == "ModuleList()"


def test_module_list_takes_iterables_alone(lib):
    message = "ModuleList.extend should be called with an iterable, but got int"
    with pytest.raises(TypeError, match=message):
        lib.nn.ModuleList([]).extend(5)
    with pytest.raises(TypeError, match="int is not a Module subclass"):
        lib.nn.ModuleList([5])


@pytest.mark.parametrize("kind", ["ModuleList", "ModuleDict"])
def test_module_list_and_dict_cannot_be_called(lib, kind):
    message = f'Module [{kind}] is missing the required "forward" function'
    with pytest.raises(NotImplementedError, match=re.escape(message)):
        getattr(lib.nn, kind)()(5)


def test_module_dict_is_a_dictionary_of_members(lib):
    net = lib.nn.ModuleDict({"b": step(lib, 1), "a": step(lib, 2)})
    net["c"] = step(lib, 3)
    net.update([("a", step(lib, 5)), ["d", step(lib, 6)]])
    net.update(lib.nn.ModuleDict({"e": step(lib, 7)}))
    assert list(net) == list(net.keys()) == ["b", "a", "c", "d", "e"]
    assert [part(0) for part in net.values()] == [1, 5, 3, 6, 7]
    assert next(iter(net.items())) == ("b", net.b)
    assert "a" in net and "x" not in net and len(net) == 5 and net.a is net["a"]
    del net["b"]
    assert net.pop("c")(0) == 3 and list(net) == ["a", "d", "e"]
    assert repr(net).startswith("ModuleDict(\n  (a): Step(5)\n")
    net.clear()
    assert len(net) == 0
    with pytest.raises(KeyError):
        net["a"]


@pytest.mark.parametrize("kind", ["ModuleDict", "ParameterDict"])
def test_update_takes_pairs_alone(lib, kind):
    holder = getattr(lib.nn, kind)()
    with pytest.raises(TypeError, match=r"\.update should be called with an iterable of key/valu"):
        holder.update(5)
    with pytest.raises(TypeError, match=f"{kind} update sequence element #0 should be Iterable"):
        holder.update([5])
    message = f"{kind} update sequence element #0 has length 3; 2 is required"
    with pytest.raises(ValueError, match=message):
        holder.update([(1, 2, 3)])


# ParameterList, ParameterDict


def test_parameter_list_makes_parameters_of_tensors(lib):
    holder = lib.nn.ParameterList([lib.tensor([1.0]), parameter(lib, 2.0), "text"])
    assert [name for name, _ in holder.named_parameters()] == ["0", "1"]
    assert isinstance(holder[0], lib.nn.Parameter) and holder[-1] == "text"
    holder.append(lib.tensor([4.0])).extend([parameter(lib, 5.0)])
    holder += [parameter(lib, 6.0)]
    holder[2] = lib.tensor([3.0])
    assert plain(holder) == [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]] and len(holder) == 6
    assert type(holder[1:3]) is lib.nn.ParameterList
    assert plain(holder[4:0:-2]) == [[5.0], [3.0]]


def test_parameter_list_takes_iterables_alone(lib):
    for wrong, name in ((5, "int"), (lib.ones(2), "Tensor")):
        message = f"ParameterList.extend should be called with an iterable, but got {name}"
        with pytest.raises(TypeError, match=message):
            lib.nn.ParameterList().extend(wrong)
    with pytest.raises(IndexError, match="index 1 is out of range"):
        lib.nn.ParameterList([lib.ones(1)])[1]


def test_parameter_holders_cannot_be_called(lib):
    for kind in ("ParameterList", "ParameterDict"):
        with pytest.raises(RuntimeError, match=f"{kind} should not be called."):
            getattr(lib.nn, kind)()(5)


def test_parameter_list_prints_dtypes_and_sizes(lib):
    holder = lib.nn.ParameterList([lib.ones(2, 3), "text"])
    assert repr(holder) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [torch.float32 of size 2x3]\n"
        "    (1): Object of type: str\n"
        ")"
    )


def test_parameter_dict_prints_types_and_sizes(lib):
    holder = lib.nn.ParameterDict({"a": lib.ones(2, 3), "b": "text"})
    assert repr(holder) == (
        "ParameterDict(\n"
        "    (a): Parameter containing: [torch.FloatTensor of size 2x3]\n"
        "    (b): Object of type: str\n"
        ")"
    )


def test_parameter_dict_is_a_dictionary_of_members(lib):
    holder = lib.nn.ParameterDict({"b": lib.tensor([1.0]), "a": parameter(lib, 2.0)})
    assert list(holder) == ["a", "b"]  # a plain dict is sorted
    holder["c"] = lib.tensor([3.0])
    holder.update(OrderedDict([("z", lib.tensor([4.0])), ("y", 5)]))
    assert list(holder.keys()) == ["a", "b", "c", "z", "y"]
    assert list(reversed(holder)) == ["y", "z", "c", "b", "a"]
    assert plain(holder.values()) == [[2.0], [1.0], [3.0], [4.0], 5]
    assert dict(holder.items())["y"] == 5 and "a" in holder and len(holder) == 5
    assert [name for name, _ in holder.named_parameters()] == ["a", "b", "c", "z"]
    assert holder.popitem() == ("y", 5)
    assert plain([holder.pop("z"), holder.get("c")]) == [[4.0], [3.0]]
    assert holder.get("x", 7) == 7 and holder.setdefault("x", 8) == 8
    assert plain([holder.setdefault("c", 9)]) == [[3.0]]
    del holder["x"]
    assert list(holder) == ["a", "b", "c"]


def test_parameter_dicts_are_united(lib):
    first = lib.nn.ParameterDict({"a": lib.tensor([1.0])})
    second = lib.nn.ParameterDict({"a": lib.tensor([2.0]), "b": lib.tensor([3.0])})
    assert plain((first | second).values()) == [[2.0], [3.0]]
    assert plain(first.values()) == [[1.0]]
    first |= second
    assert list(first) == ["a", "b"]
    twin = first.copy()
    first.clear()
    assert list(twin) == ["a", "b"] and not list(first)
    assert twin["a"] is second["a"]
    assert dict(first.fromkeys(["p", "q"], 5).items()) == {"p": 5, "q": 5}


def test_parameter_dict_takes_strings_as_keys_alone(lib):
    with pytest.raises(TypeError, match="Index given to ParameterDict cannot be used as a key"):
        lib.nn.ParameterDict()[5] = 5
