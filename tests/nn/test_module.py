"""Modules without hooks: members, state, conversions, printing; each test with `lib` runs on both.

Layers are not needed: the modules have parameters of their own and compute with arithmetic.
"""

from __future__ import annotations

import copy
import gc
import importlib
import pickle
import weakref
from collections import OrderedDict

import pytest

import convcore


def plain(tensor):
    return tensor.detach().tolist()


def scale_class(lib):
    """Return a class of modules with a parameter, a buffer and one that is not saved."""

    class Scale(lib.nn.Module):
        def __init__(self, factor=2.0):
            super().__init__()
            self.weight = lib.nn.Parameter(lib.tensor([factor]))
            self.register_buffer("count", lib.tensor(0))
            self.register_buffer("scratch", lib.zeros(1), persistent=False)

        def forward(self, x):
            return x * self.weight

        def extra_repr(self):
            return f"factor={self.weight.item():g}"

    return Scale


def scale(lib, factor=2.0):
    return scale_class(lib)(factor)


def net_of(lib):
    """Return a module with two Scales inside one another, and a parameter after them."""
    net = lib.nn.Module()
    net.outer = scale(lib)
    net.outer.inner = scale(lib, 3.0)
    net.bias = lib.nn.Parameter(lib.tensor([1.0, 2.0]))
    return net


def raises(error, message, call):
    with pytest.raises(error) as caught:
        call()
    text, _, _ = caught.value.args[0].partition("\nHint: ")  # str() of a KeyError would quote it
    assert text == message


# Parameters and buffers


def test_parameter_requires_grad_and_shares_the_memory(lib):
    data = lib.tensor([1.0, 2.0])
    parameter = lib.nn.Parameter(data)
    assert parameter.requires_grad and parameter.is_leaf and not data.requires_grad
    data.mul_(3)
    assert plain(parameter) == [3.0, 6.0]
    assert isinstance(parameter, lib.nn.Parameter) and isinstance(parameter, lib.Tensor)
    assert not isinstance(data, lib.nn.Parameter)


def test_parameter_needs_no_grad_if_told(lib):
    assert not lib.nn.Parameter(lib.tensor([1]), requires_grad=False).requires_grad
    with pytest.raises(RuntimeError, match=r"(?i)only Tensors of floating point and complex"):
        lib.nn.Parameter(lib.tensor([1]))


def test_parameter_made_under_no_grad_requires_grad(lib):
    with lib.no_grad():
        assert lib.nn.Parameter(lib.zeros(1)).requires_grad


def test_parameter_without_data_is_empty(lib):
    assert lib.nn.Parameter().shape == (0,)


def test_parameter_of_a_computed_tensor_is_a_leaf(lib):
    x = lib.tensor([1.0], requires_grad=True)
    parameter = lib.nn.Parameter(x * 2)
    assert parameter.is_leaf and parameter.grad_fn is None and parameter.requires_grad


def test_parameter_prints_its_class(lib):
    parameter = lib.nn.Parameter(lib.tensor([1.0, 2.0]))
    assert repr(parameter) == "Parameter containing:\ntensor([1., 2.], requires_grad=True)"


def test_operations_on_parameters_give_tensors(lib):
    parameter = lib.nn.Parameter(lib.tensor([1.0]))
    for result in (parameter * 2, parameter.detach(), parameter.data):
        assert type(result) is lib.Tensor


def test_parameter_deepcopy_is_a_parameter_without_gradient(lib):
    parameter = lib.nn.Parameter(lib.tensor([1.0]))
    parameter.grad = lib.tensor([5.0])
    parameter.register_hook(print)
    twin, again = copy.deepcopy([parameter, parameter])
    assert type(twin) is lib.nn.Parameter and twin is again
    assert plain(twin) == [1.0] and twin.requires_grad and twin.grad is None
    twin.data.fill_(7.0)
    assert plain(parameter) == [1.0]


def test_parameter_is_pickled_as_one(lib):
    parameter = lib.nn.Parameter(lib.tensor([1.0]), requires_grad=False)
    parameter.note = "mine"
    twin = pickle.loads(pickle.dumps(parameter))
    assert isinstance(twin, lib.nn.Parameter) and plain(twin) == [1.0]
    assert not twin.requires_grad and twin.note == "mine"


def test_buffer_is_registered_by_assignment(lib):
    net = lib.nn.Module()
    net.mean = lib.nn.Buffer(lib.zeros(2))
    net.scratch = lib.nn.Buffer(lib.zeros(2), persistent=False)
    assert [name for name, _ in net.named_buffers()] == ["mean", "scratch"]
    assert list(net.state_dict()) == ["mean"]
    net.scratch = lib.ones(2)
    assert list(net.state_dict()) == ["mean"] and plain(net.scratch) == [1.0, 1.0]
    assert isinstance(net.mean, lib.nn.Buffer) and not isinstance(net.mean, lib.nn.Parameter)


# Attributes


def test_members_are_what_is_assigned(lib):
    net = net_of(lib)
    assert [name for name, _ in net.named_parameters()] == [
        "bias",
        "outer.weight",
        "outer.inner.weight",
    ]
    assert [name for name, _ in net.named_buffers()] == [
        "outer.count",
        "outer.scratch",
        "outer.inner.count",
        "outer.inner.scratch",
    ]
    assert [name for name, _ in net.named_modules()] == ["", "outer", "outer.inner"]
    assert [name for name, _ in net.named_children()] == ["outer"]
    assert list(net.children()) == [net.outer]
    assert list(net.modules()) == [net, net.outer, net.outer.inner]


def test_plain_tensors_and_other_attributes_are_no_members(lib):
    net = lib.nn.Module()
    net.mask = lib.ones(2)
    net.anything = "text"
    net.mask = net.mask * 2
    assert not list(net.parameters()) and not list(net.buffers()) and not net.state_dict()
    assert plain(net.mask) == [2.0, 2.0] and net.anything == "text"


def test_listing_does_not_go_below_if_told(lib):
    net = net_of(lib)
    assert [name for name, _ in net.named_parameters(recurse=False)] == ["bias"]
    assert not list(net.buffers(recurse=False))


def test_listing_has_a_prefix(lib):
    net = net_of(lib)
    assert next(net.named_parameters(prefix="net"))[0] == "net.bias"
    assert [name for name, _ in net.named_modules(prefix="net")][:2] == ["net", "net.outer"]


def test_shared_members_are_listed_once(lib):
    net = lib.nn.Module()
    net.a = net.b = scale(lib)
    net.tied = net.a.weight
    assert [name for name, _ in net.named_modules()] == ["", "a"]
    assert [name for name, _ in net.named_children()] == ["a"]
    assert [name for name, _ in net.named_parameters()] == ["tied"]
    assert [name for name, _ in net.named_modules(remove_duplicate=False)] == ["", "a", "b"]
    names = [name for name, _ in net.named_parameters(remove_duplicate=False)]
    assert names == ["tied", "a.weight", "b.weight"]
    assert [name for name, _ in net.named_buffers(remove_duplicate=False)][:2] == [
        "a.count",
        "a.scratch",
    ]
    assert list(net.state_dict()) == ["tied", "a.weight", "a.count", "b.weight", "b.count"]


def test_none_keeps_a_members_place(lib):
    net = scale(lib)
    net.inner = scale(lib)
    net.weight = net.count = net.inner = None
    assert not list(net.parameters()) and list(net.state_dict()) == []
    net.inner = scale(lib)
    net.weight = lib.nn.Parameter(lib.zeros(1))
    net.count = lib.tensor(5)
    assert list(net.state_dict()) == ["weight", "count", "inner.weight", "inner.count"]


def test_assignment_moves_a_name_to_another_kind(lib):
    net = scale(lib)
    net.scratch = lib.nn.Parameter(lib.zeros(1))
    assert [name for name, _ in net.named_parameters()] == ["weight", "scratch"]
    assert [name for name, _ in net.named_buffers()] == ["count"]
    net.count = scale(lib)
    assert not list(net.buffers(recurse=False)) and "count" in net._modules
    net.text = "plain"
    net.text = lib.nn.Parameter(lib.zeros(1))
    assert "text" not in vars(net) and "text" in net._parameters
    assert "scratch" not in net._non_persistent_buffers_set


def test_deletion_takes_members_away(lib):
    net = scale(lib)
    net.inner = scale(lib)
    net.text = "plain"
    for name in ("weight", "count", "scratch", "inner", "text"):
        delattr(net, name)
        assert not hasattr(net, name)
    assert not net._non_persistent_buffers_set
    with pytest.raises(AttributeError):
        del net.weight


def test_dir_lists_members(lib):
    net = lib.nn.Sequential(scale(lib))
    net.extra = scale(lib)
    assert {"extra", "forward", "training"} < set(dir(net))
    assert {"weight", "count"} < set(dir(net.extra))
    assert "0" not in dir(net)


# (exception, its message, what to do with a Scale that has another inside, and the library)
FAULTS = [
    (AttributeError, "'Scale' object has no attribute 'x'", lambda m, lib: m.x),
    (
        TypeError,
        "cannot assign 'torch.FloatTensor' as parameter 'weight' "
        "(torch.nn.Parameter or None expected)",
        lambda m, lib: setattr(m, "weight", lib.ones(1)),
    ),
    (
        TypeError,
        "cannot assign 'int' as parameter 'weight' (torch.nn.Parameter or None expected)",
        lambda m, lib: setattr(m, "weight", 5),
    ),
    (
        TypeError,
        "cannot assign 'collections.OrderedDict' as parameter 'weight' "
        "(torch.nn.Parameter or None expected)",
        lambda m, lib: setattr(m, "weight", OrderedDict()),
    ),
    (
        TypeError,
        "cannot assign 'torch.DoubleTensor' as child module 'inner' "
        "(torch.nn.Module or None expected)",
        lambda m, lib: setattr(m, "inner", lib.ones(1).double()),
    ),
    (
        TypeError,
        "cannot assign 'str' as buffer 'count' (torch.nn.Buffer, torch.Tensor or None expected)",
        lambda m, lib: setattr(m, "count", "five"),
    ),
    (
        TypeError,
        "cannot assign 'torch.FloatTensor' object to parameter 'a' "
        "(torch.nn.Parameter or None required)",
        lambda m, lib: m.register_parameter("a", lib.ones(1)),
    ),
    (
        TypeError,
        "cannot assign 'int' object to buffer 'a' (torch Tensor or None required)",
        lambda m, lib: m.register_buffer("a", 5),
    ),
    (TypeError, "int is not a Module subclass", lambda m, lib: m.add_module("a", 5)),
    (TypeError, "module name should be a string. Got int", lambda m, lib: m.add_module(5, m)),
    (
        TypeError,
        "parameter name should be a string. Got int",
        lambda m, lib: m.register_parameter(5, None),
    ),
    (
        KeyError,
        'parameter name can\'t contain "."',
        lambda m, lib: m.register_parameter("a.b", None),
    ),
    (KeyError, 'buffer name can\'t be empty string ""', lambda m, lib: m.register_buffer("", None)),
    (
        KeyError,
        'module name can\'t contain ".", got: a.b',
        lambda m, lib: m.add_module("a.b", None),
    ),
    (
        KeyError,
        "attribute 'weight' already exists",
        lambda m, lib: m.register_module("weight", None),
    ),
    (
        KeyError,
        "attribute 'forward' already exists",
        lambda m, lib: m.register_buffer("forward", None),
    ),
    (AttributeError, "Scale has no attribute `a`", lambda m, lib: m.get_submodule("a.b")),
    (AttributeError, "`weight` is not an nn.Module", lambda m, lib: m.get_submodule("weight")),
    (AttributeError, "Scale has no attribute `a`", lambda m, lib: m.get_parameter("a")),
    (AttributeError, "`count` is not an nn.Parameter", lambda m, lib: m.get_parameter("count")),
    (AttributeError, "`weight` is not a buffer", lambda m, lib: m.get_buffer("weight")),
    (AttributeError, "`weight` is not an nn.Module", lambda m, lib: m.set_submodule("weight", m)),
    (
        AttributeError,
        "Scale has no attribute `a`",
        lambda m, lib: m.set_submodule("a", m, strict=True),
    ),
    (
        ValueError,
        "Cannot set the submodule without a target name!",
        lambda m, lib: m.set_submodule("", m),
    ),
    (
        ValueError,
        "`module` is not an nn.Module, found <class 'int'>",
        lambda m, lib: m.set_submodule("a", 5),
    ),
    (ValueError, "training mode is expected to be boolean", lambda m, lib: m.train(1)),
    (
        TypeError,
        "nn.Module.to only accepts floating point or complex dtypes, but got desired "
        "dtype=torch.int32",
        lambda m, lib: m.to(lib.int32),
    ),
    (
        TypeError,
        "Expected state_dict to be dict-like, got <class 'int'>.",
        lambda m, lib: m.load_state_dict(5),
    ),
    (
        NotImplementedError,
        'Module [Module] is missing the required "forward" function',
        lambda m, lib: lib.nn.Module()(5),
    ),
    (
        TypeError,
        "Module.__init__() takes 1 positional argument but 2 were given",
        lambda m, lib: lib.nn.Module(5),
    ),
    (
        TypeError,
        "Module.__init__() got an unexpected keyword argument 'a'",
        lambda m, lib: lib.nn.Module(a=5),
    ),
]


@pytest.mark.parametrize(("error", "message", "act"), FAULTS)
def test_misuse_raises_pytorchs_text(lib, error, message, act):
    net = scale(lib)
    net.inner = lib.nn.Sequential()
    raises(error, message, lambda: act(net, lib))


def test_computed_tensor_cannot_be_registered_as_parameter(lib):
    parameter = lib.nn.Parameter(lib.ones(1))
    view = lib.nn.Parameter(lib.ones(1)) * parameter
    view.__class__ = lib.nn.Parameter
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'a'"):
        lib.nn.Module().register_parameter("a", view)


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("parameters", lambda lib: lib.nn.Parameter(lib.ones(1))),
        ("module", lambda lib: lib.nn.Sequential()),
    ],
)
def test_assignment_before_init_raises(lib, kind, make):
    class Early(lib.nn.Module):
        def __init__(self):
            self.early = make(lib)

    raises(AttributeError, f"cannot assign {kind} before Module.__init__() call", Early)


@pytest.mark.parametrize("kind", ["parameter", "buffer"])
def test_registration_before_init_raises(lib, kind):
    class Early(lib.nn.Module):
        def __init__(self):
            getattr(self, f"register_{kind}")("early", None)

    raises(AttributeError, f"cannot assign {kind} before Module.__init__() call", Early)


def test_plain_attributes_may_be_set_before_init(lib):
    class Early(lib.nn.Module):
        def __init__(self):
            self.size = 5
            super().__init__()

    assert Early().size == 5


def test_call_before_init_raises(lib):
    class Never(lib.nn.Module):
        def __init__(self):
            pass

        def forward(self):
            return 5

    with pytest.raises(AttributeError):
        Never()()


def test_init_goes_on_to_other_bases_if_told(lib):
    class Named:
        def __init__(self, name):
            self.name = name

    class Both(lib.nn.Module, Named):
        call_super_init = True

    assert Both("both").name == "both"


def test_members_are_found_by_path(lib):
    net = net_of(lib)
    assert net.get_submodule("outer.inner") is net.outer.inner
    assert net.get_submodule("") is net
    assert net.get_parameter("outer.inner.weight") is net.outer.inner.weight
    assert net.get_buffer("outer.count") is net.outer.count
    other = scale(lib)
    net.set_submodule("outer.inner", other)
    net.set_submodule("outer.new", other)
    assert net.outer.inner is other and net.outer.new is other


def test_module_is_registered_under_either_name(lib):
    net = lib.nn.Module()
    net.add_module("a", scale(lib))
    net.register_module("b", None)
    assert list(net._modules) == ["a", "b"] and net.b is None


# State


def test_state_shares_memory_and_needs_no_grad(lib):
    net = net_of(lib)
    state = net.state_dict()
    assert type(state) is OrderedDict
    assert list(state) == [
        "bias",
        "outer.weight",
        "outer.count",
        "outer.inner.weight",
        "outer.inner.count",
    ]
    assert not state["bias"].requires_grad and type(state["bias"]) is lib.Tensor
    state["bias"].mul_(2)
    assert plain(net.bias) == [2.0, 4.0]
    assert net.state_dict(keep_vars=True)["bias"] is net.bias


def test_state_has_a_prefix_and_the_versions(lib):
    class Versioned(lib.nn.Module):
        _version = 3

    net = lib.nn.Module()
    net.part = Versioned()
    assert net.state_dict()._metadata == {"": {"version": 1}, "part": {"version": 3}}
    destination = OrderedDict()
    assert scale(lib).state_dict(destination=destination, prefix="a.") is destination
    assert list(destination) == ["a.weight", "a.count"]


def test_positional_arguments_of_state_dict_are_deprecated(lib):
    destination = {}
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        scale(lib).state_dict(destination, "a.", True)
    assert list(destination) == ["a.weight", "a.count"]
    assert destination["a.weight"].requires_grad


def test_state_is_loaded_into_the_same_parameters(lib):
    net, other = net_of(lib), net_of(lib)
    for parameter in other.parameters():
        parameter.data.fill_(7.0)
    before = list(net.parameters())
    result = net.load_state_dict(other.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    assert all(old is new for old, new in zip(before, net.parameters(), strict=True))
    assert plain(net.bias) == [7.0, 7.0] and net.bias.requires_grad
    assert plain(net.outer.inner.weight) == [7.0]


def test_state_of_another_dtype_is_converted(lib):
    net = scale(lib)
    net.load_state_dict({"weight": lib.tensor([5.0]).double(), "count": lib.tensor(3)})
    assert net.weight.dtype == lib.float32 and plain(net.weight) == [5.0]


def test_strict_loading_reports_everything_that_does_not_fit(lib):
    message = (
        "Error(s) in loading state_dict for Scale:\n\t"
        'Missing key(s) in state_dict: "count". \n\t'
        'Unexpected key(s) in state_dict: "other", "a.b". \n\t'
        "size mismatch for weight: copying a param with shape torch.Size([3, 2]) from checkpoint, "
        "the shape in current model is torch.Size([1])."
    )
    state = {"weight": lib.ones(3, 2), "other": lib.ones(1), "a.b": lib.ones(1)}
    raises(RuntimeError, message, lambda: scale(lib).load_state_dict(state))


def test_loading_returns_keys_if_not_strict(lib):
    net = scale(lib)
    result = net.load_state_dict({"weight": lib.tensor([5.0]), "x": lib.ones(1)}, strict=False)
    assert (result.missing_keys, result.unexpected_keys) == (["count"], ["x"])
    assert repr(result) == "_IncompatibleKeys(missing_keys=['count'], unexpected_keys=['x'])"
    assert plain(net.weight) == [5.0]


def test_loading_refuses_other_shapes_even_if_not_strict(lib):
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        scale(lib).load_state_dict({"weight": lib.ones(2)}, strict=False)


def test_loading_refuses_what_is_no_tensor(lib):
    message = (
        "Error(s) in loading state_dict for Scale:\n\t"
        'While copying the parameter named "weight", expected torch.Tensor or Tensor-like object '
        "from checkpoint but received <class 'int'>"
    )
    raises(RuntimeError, message, lambda: scale(lib).load_state_dict({"weight": 5}, strict=False))


def test_loading_takes_one_element_for_no_axes(lib):
    net = lib.nn.Module()
    net.register_buffer("count", lib.tensor(0.0))
    net.load_state_dict({"count": lib.tensor([5.0])})
    assert plain(net.count) == 5.0


def test_loading_assigns_if_told(lib):
    net = scale(lib)
    net.weight.requires_grad_(False)
    state = {"weight": lib.tensor([5.0]).double(), "count": lib.tensor(3)}
    net.load_state_dict(state, assign=True)
    assert net.weight.dtype == lib.float64 and isinstance(net.weight, lib.nn.Parameter)
    assert not net.weight.requires_grad and net.count is state["count"]


def test_loading_does_not_change_the_given_state(lib):
    state = scale(lib).state_dict()
    keys = list(state)
    net = scale(lib)
    net.register_load_state_dict_pre_hook(lambda net, state, *rest: state.pop("weight"))
    net.load_state_dict(state, strict=False)
    assert list(state) == keys


def test_loading_of_parts_sees_their_version(lib):
    seen = []

    class Old(lib.nn.Module):
        _version = 2

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            seen.append((prefix, local_metadata.get("version")))
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    net = lib.nn.Module()
    net.part = Old()
    net.load_state_dict(net.state_dict())
    net.load_state_dict({})
    assert seen == [("part.", 2), ("part.", None)]


def test_extra_state_is_saved_and_loaded(lib):
    class Extra(lib.nn.Module):
        note = "none"

        def get_extra_state(self):
            return {"note": self.note}

        def set_extra_state(self, state):
            self.note = state["note"]

    net, twin = Extra(), Extra()
    net.note = "mine"
    state = net.state_dict()
    assert list(state) == ["_extra_state"]
    twin.load_state_dict(state)
    assert twin.note == "mine"
    assert twin.load_state_dict({}, strict=False).missing_keys == ["_extra_state"]
    result = lib.nn.Module().load_state_dict(state, strict=False)
    assert result.unexpected_keys == ["_extra_state"]


# Hooks on the state


def test_state_dict_hooks_run_around_saving(lib):
    log = []
    net = net_of(lib)
    net.outer.register_state_dict_pre_hook(
        lambda part, prefix, keep_vars: log.append((prefix, keep_vars))
    )

    def after(part, state, prefix, metadata):
        log.append((type(part).__name__, prefix, metadata))
        state["added"] = 5

    net.outer.register_state_dict_post_hook(after)
    state = net.state_dict(keep_vars=True)
    assert log == [("outer.", True), ("Scale", "outer.", {"version": 1})]
    assert state["added"] == 5


def test_state_dict_post_hook_must_return_none(lib):
    net = scale(lib)
    net.register_state_dict_post_hook(lambda net, state, prefix, metadata: state)
    raises(RuntimeError, "state_dict post-hook must return None", net.state_dict)


def test_private_state_dict_hook_may_replace_the_state_of_the_root(lib):
    net = net_of(lib)
    net._register_state_dict_hook(lambda net, state, prefix, metadata: {"replaced": 5})
    assert net.state_dict() == {"replaced": 5}
    root = lib.nn.Module()
    root.net = net
    assert "replaced" not in root.state_dict()


def test_load_state_dict_pre_hook_is_always_strict(lib):
    log = []
    net = scale(lib)

    def before(module, state, prefix, metadata, strict, missing, unexpected, errors):
        log.append((module is net, prefix, metadata, strict, missing, unexpected, errors))
        state["weight"] = state.pop("old_name")

    net.register_load_state_dict_pre_hook(before)
    net.load_state_dict({"old_name": lib.tensor([5.0])}, strict=False)
    assert log == [(True, "", {}, True, ["count"], [], [])]
    assert plain(net.weight) == [5.0]


@pytest.mark.parametrize("with_module", [False, True])
def test_private_load_state_dict_pre_hook_gets_the_module_if_told(lib, with_module):
    log = []
    net = scale(lib)
    net._register_load_state_dict_pre_hook(lambda *args: log.append(args[:-7]), with_module)
    net.load_state_dict(net.state_dict())
    assert log == [(net,) if with_module else ()]


def test_load_state_dict_post_hook_decides_what_is_missing(lib):
    log = []
    net = net_of(lib)

    def forgive(part, keys):
        log.append(type(part).__name__)
        keys.missing_keys.clear()

    net.register_load_state_dict_post_hook(forgive)
    net.outer.register_load_state_dict_post_hook(forgive)
    net.load_state_dict({})
    assert log == ["Scale", "Module"]
    net.register_load_state_dict_post_hook(lambda part, keys: keys.unexpected_keys.append("x"))
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "x"'):
        net.load_state_dict({})


def test_load_state_dict_post_hook_must_return_none(lib):
    net = scale(lib)
    net.register_load_state_dict_post_hook(lambda net, keys: keys)
    with pytest.raises(AssertionError, match="not expected to return new values"):
        net.load_state_dict(net.state_dict())


def test_state_hooks_are_removed_by_their_handles(lib):
    net = scale(lib)

    def fail(*args):
        raise ValueError

    net.register_state_dict_pre_hook(fail).remove()
    net.register_state_dict_post_hook(fail).remove()
    net.register_load_state_dict_pre_hook(fail).remove()
    net.register_load_state_dict_post_hook(fail).remove()
    net.load_state_dict(net.state_dict())


def test_bound_methods_may_be_state_dict_post_hooks():
    class Saver:
        def after(self, net, state, prefix, metadata):
            state["saved"] = True

    net = scale(convcore)
    net.register_state_dict_post_hook(Saver().after)
    assert net.state_dict()["saved"]


def note_load(module, *rest):
    module.noted = True


def test_copy_of_a_module_loads_with_its_own_hooks(lib):
    net = lib.nn.Sequential()
    net.register_load_state_dict_pre_hook(note_load)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        twin.load_state_dict({})
        assert twin.noted and not hasattr(net, "noted")


# Changing all members


def test_apply_goes_children_first(lib):
    log = []
    net = net_of(lib)
    assert net.apply(log.append) is net
    assert log == [net.outer.inner, net.outer, net]


def test_train_and_eval_reach_every_module(lib):
    net = net_of(lib)
    assert net.training and net.eval() is net
    assert [part.training for part in net.modules()] == [False] * 3
    net.train()
    assert [part.training for part in net.modules()] == [True] * 3
    net.outer.train(False)
    assert [part.training for part in net.modules()] == [True, False, False]


def test_requires_grad_reaches_every_parameter(lib):
    net = net_of(lib)
    assert net.requires_grad_(False) is net
    assert not any(parameter.requires_grad for parameter in net.parameters())


def test_zero_grad_forgets_or_fills(lib):
    net = scale(lib)
    net.zero_grad(set_to_none=False)
    assert net.weight.grad is None
    net.weight.grad = grad = lib.tensor([5.0])
    net.zero_grad(set_to_none=False)
    assert net.weight.grad is grad and plain(grad) == [0.0]
    net.zero_grad()
    assert net.weight.grad is None


def test_zero_grad_fills_a_gradient_that_is_a_view(lib):
    net = lib.nn.Linear(2, 1)
    optimizer = lib.optim.SGD(net.parameters(), lr=0.1)
    for blank in (net.zero_grad, optimizer.zero_grad):
        for parameter in net.parameters():
            parameter.grad = lib.ones(2, parameter.numel())[0].view_as(parameter)
        blank(set_to_none=False)
        assert [p.grad.abs().sum().item() for p in net.parameters()] == [0, 0]


def test_zero_grad_cuts_the_gradients_graph(lib):
    net = scale(lib)
    net.weight.grad = net.weight * 2
    net.zero_grad(set_to_none=False)
    assert net.weight.grad.grad_fn is None and not net.weight.grad.requires_grad


@pytest.mark.parametrize(
    "convert",
    [
        lambda net, lib: net.double(),
        lambda net, lib: net.to(lib.float64),
        lambda net, lib: net.to(dtype=lib.float64),
        lambda net, lib: net.to("cpu", lib.float64),
        lambda net, lib: net.to(lib.device("cpu"), lib.float64, True),
        lambda net, lib: net.to(lib.zeros(1).double()),
    ],
)
def test_conversion_keeps_the_parameter_objects(lib, convert):
    net = scale(lib)
    weight = net.weight
    weight.grad = lib.tensor([5.0])
    assert convert(net, lib) is net
    assert net.weight is weight and weight.dtype == lib.float64 and weight.requires_grad
    assert weight.grad.dtype == lib.float64 and weight.is_leaf
    assert net.scratch.dtype == lib.float64 and net.count.dtype == lib.int64


def test_conversions_have_names(lib):
    net = scale(lib)
    assert net.half().weight.dtype == lib.float16 and net.count.dtype == lib.int64
    assert net.float().weight.dtype == lib.float32
    net.weight.requires_grad_(False)
    assert net.type(lib.int32).weight.dtype == lib.int32
    assert net.count.dtype == lib.int32


def test_converted_parameters_are_still_trained(lib):
    net = scale(lib).double()
    net(lib.tensor([3.0]).double()).sum().backward()
    assert plain(net.weight.grad) == [3.0] and net.weight.grad.dtype == lib.float64


def test_conversion_to_the_same_changes_nothing(lib):
    net = scale(lib)
    address = net.weight.data_ptr()
    assert net.to("cpu").to(lib.float32).cpu() is net
    assert net.weight.data_ptr() == address


def test_channels_last_is_for_four_axes_alone(lib):
    net = lib.nn.Module()
    net.four = lib.nn.Parameter(lib.ones(2, 3, 4, 5))
    net.three = lib.nn.Parameter(lib.ones(2, 3, 4))
    net.register_buffer("whole", lib.ones(2, 3, 4, 5, dtype=lib.int64))
    four = net.four
    assert net.to(memory_format=lib.channels_last) is net
    assert net.four is four and four.stride() == (60, 1, 15, 3)
    assert net.three.stride() == (12, 4, 1) and net.whole.stride() == (60, 1, 15, 3)
    net.to(lib.float64, memory_format=lib.contiguous_format)
    assert four.stride() == (60, 20, 5, 1) and four.dtype == lib.float64


def test_only_the_cpu_is_there():
    for move in (lambda net: net.cuda(), lambda net: net.to("cuda:0")):
        with pytest.raises(RuntimeError, match="on the CPU"):
            move(scale(convcore))


def test_wrong_argument_of_to_is_named():
    with pytest.raises(TypeError, match=r"invalid combination of arguments - got 5"):
        scale(convcore).to(5)


# Printing, copying


def test_module_prints_extra_and_children_line_by_line(lib):
    net = net_of(lib)
    assert repr(scale(lib)) == "Scale(factor=2)"
    assert repr(lib.nn.Module()) == "Module()"
    assert repr(net) == (
        "Module(\n  (outer): Scale(\n    factor=2\n    (inner): Scale(factor=3)\n  )\n)"
    )


def test_module_prints_several_extra_lines(lib):
    class Wordy(lib.nn.Module):
        def extra_repr(self):
            return "first\n\nsecond"

    net = lib.nn.Module()
    net.words = Wordy()
    assert repr(net) == "Module(\n  (words): Wordy(\n    first\n\n    second\n  )\n)"


def test_name_that_is_printed_may_be_overridden(lib):
    class Named(lib.nn.Module):
        def _get_name(self):
            return "Other"

    assert repr(Named()) == "Other()"


def test_deepcopy_copies_members_and_keeps_ties(lib):
    net = net_of(lib)
    net.tied = net.outer.weight
    twin = copy.deepcopy(net)
    assert twin.tied is twin.outer.weight and twin.tied is not net.tied
    twin.bias.data.fill_(0.0)
    assert plain(net.bias) == [1.0, 2.0]


def test_module_is_pickled(lib):
    net = lib.nn.Sequential(lib.nn.Sequential())
    net.weight = lib.nn.Parameter(lib.tensor([5.0]))
    twin = pickle.loads(pickle.dumps(net))
    assert repr(twin) == repr(net)
    assert plain(twin.weight) == [5.0] and isinstance(twin.weight, lib.nn.Parameter)


def test_module_is_freed_at_once():
    net = net_of(convcore)
    net.outer.register_load_state_dict_pre_hook(note_load)
    net.load_state_dict(net.state_dict())
    gone = [weakref.ref(thing) for thing in (net, net.outer, net.bias)]
    gc.disable()
    try:
        del net
        assert [reference() for reference in gone] == [None] * 3
    finally:
        gc.enable()


def test_pytorchs_path_has_the_module(lib):
    room = importlib.import_module(f"{lib.__name__}.nn.modules.module")
    assert room.Module is lib.nn.Module is lib.nn.modules.Module
    parameter_room = importlib.import_module(f"{lib.__name__}.nn.parameter")
    assert parameter_room.Parameter is lib.nn.Parameter


def test_to_takes_what_pytorchs_takes(torch):
    cpu = "cpu"
    calls = [
        lambda lib, net: net.to(lib.device(cpu), True),
        lambda lib, net: net.to(None, True),
        lambda lib, net: net.to(lib.device(cpu), lib.ones(3)),
        lambda lib, net: net.to(lib.float16, lib.float32),
        lambda lib, net: net.to(cpu, lib.float64, True),
        lambda lib, net: net.to(lib.ones(3), True),
        lambda lib, net: net.to(None, None, True),
    ]
    found = []
    for lib in (convcore, torch):
        for call in calls:
            try:
                found.append(str(call(lib, lib.nn.Linear(2, 3)).weight.dtype))
            except TypeError as error:
                found.append(str(error).partition(" - ")[0])
    assert found[: len(calls)] == found[len(calls) :]
    assert found[4] == "torch.float64"


def test_a_complex_module_warns(lib):
    with pytest.warns(UserWarning, match="Complex modules are a new feature"):
        assert lib.nn.Linear(2, 3).to(lib.complex64).weight.dtype is lib.complex64


def test_a_module_on_meta_says_how_to_leave_it(torch):
    said = []
    for lib in (convcore, torch):
        with pytest.raises(NotImplementedError) as error:
            lib.nn.Linear(2, 3, device="meta").to("cpu")
        said.append(str(error.value))
    assert said[0] == said[1]


def test_shared_parameters_have_shared_storages(lib):
    layer = lib.nn.Linear(2, 3)
    assert not layer.weight.untyped_storage().is_shared()
    assert layer.share_memory().weight.untyped_storage().is_shared()


def test_a_prefix_of_a_state_is_removed(lib):
    wrapped = lib.nn.Sequential(lib.nn.Linear(2, 3))
    state = wrapped.state_dict()
    lib.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "0.")
    assert list(state) == ["weight", "bias"]
    assert list(state._metadata) == ["", "0"] or list(state._metadata) == [""]
    lib.nn.Linear(2, 3).load_state_dict(state)


def test_a_normalization_of_instances_may_say_the_rank(lib):
    class Flat(lib.nn.InstanceNorm2d):
        def _get_no_batch_dim(self):
            return 2

        def _check_input_dim(self, input):
            pass

    assert Flat(3)(lib.ones(3, 4)).shape == (3, 4)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda state: state.update({3: convcore.ones(1)}), "keys .* must be str, got int: 3"),
        (lambda state: state.update({b"bias": 1}), "keys of state_dict must be str, got bytes"),
        (lambda state: setattr(state, "_metadata", 3), "_metadata must be a dict, got int"),
        (
            lambda state: setattr(state, "_metadata", {"": {"version": "x"}}),
            r"_metadata\[''\] must be a dict with a version, an int, got \{'version': 'x'\}",
        ),
        (lambda state: setattr(state, "_metadata", {"": 5}), r"must be a dict .*, got 5"),
    ],
)
def test_what_is_no_state_is_named_and_nothing_is_changed(change, what):
    layer, other = convcore.nn.BatchNorm1d(2), convcore.nn.BatchNorm1d(2)
    convcore.nn.init.ones_(other.bias)
    state = other.state_dict()
    change(state)
    for strict in (True, False):
        with pytest.raises(TypeError, match=what):
            layer.load_state_dict(state, strict=strict)
        assert layer.bias.tolist() == [0, 0]


def test_compile_leaves_a_module_as_it_is():
    net = convcore.nn.Linear(2, 1)
    assert net.compile(mode="reduce-overhead") is None
    assert net(convcore.ones(1, 2)).shape == (1, 1)


def test_copying_values_into_a_module_without_any_is_warned_of(lib):
    layer = lib.nn.Linear(3, 2, device="meta")
    state = lib.nn.Linear(3, 2).state_dict()
    with pytest.warns(UserWarning, match="copying from a non-meta parameter") as caught:
        layer.load_state_dict(state)
    assert len(caught) == 2
    layer.load_state_dict(state, assign=True)
    assert not layer.weight.is_meta


def test_keys_that_a_hook_finds_unexpected_are_listed(lib):
    def hook(module, keys):
        keys.missing_keys.append("foo")
        keys.unexpected_keys.append("bar")

    layer = lib.nn.Linear(1, 1)
    layer.register_load_state_dict_post_hook(hook)
    with pytest.raises(RuntimeError, match=r'(?s)"bar".*"foo"|"foo".*"bar"'):
        layer.load_state_dict(layer.state_dict())


def test_modules_that_an_older_version_pickled_get_what_they_lack(lib):
    layer = lib.nn.Sequential(lib.nn.Linear(1, 1))
    for name in ("_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_backward_pre_hooks"):
        delattr(layer[0], name)
    copied = pickle.loads(pickle.dumps(layer))
    copied.load_state_dict(copied.state_dict())
    assert copied(lib.ones(1, 1)).shape == (1, 1)
