"""Hints: an error's text is PyTorch's, and its last line says what was meant."""

import contextlib
import copy
import gc
import importlib
import importlib.util
import io
import pickle
import re
import sys
import traceback
import weakref
from collections import OrderedDict

import numpy as np
import pytest
from against_torch import same_error

import convcore
from convcore import inspection, nn, optim
from convcore._errors import hinted, pytorch
from convcore.utils.data import DataLoader, Dataset, TensorDataset


def hint(action, *args, **kwargs):
    """Return the hint of the error that an action raises; '' if it has none."""
    with pytest.raises(Exception) as caught:
        action(*args, **kwargs)
    return hints(caught)


def hints(caught):
    _, mark, hint = str(caught.value).partition("\nHint: ")
    return mark[1:] + hint


def zeros(*shape, dtype="float32"):
    return lambda m: m.zeros(*shape, dtype=getattr(m, dtype))


def layer(make, input):
    return lambda m: make(m.nn)(input(m))


def loss(input, target):
    return lambda m: m.nn.functional.cross_entropy(input(m), target(m))


def scores(input, target):
    return lambda m: m.nn.functional.binary_cross_entropy_with_logits(input(m), target(m))


def changed_exp(m):
    w = m.ones(3, requires_grad=True)
    y = w.exp()
    y += 1
    y.sum().backward()


def leaf_in_place(m):
    w = m.ones(3, requires_grad=True)
    w += 1


def leaf_item(m):
    m.ones(3, requires_grad=True)[0] = 1


def without_graph(m):
    w = m.ones(3, requires_grad=True)
    with m.no_grad():
        y = w.sum()
    y.backward()


def inside_no_grad(m):
    with m.no_grad():
        m.ones(3).sum().backward()


def assigned(m):
    m.nn.Linear(2, 2).weight = m.zeros(2, 2)


def loaded(change):
    def load(m):
        net = m.nn.Sequential(m.nn.Linear(2, 2))
        net.load_state_dict(change(m, net.state_dict()))

    return load


def renamed(_, state):
    return OrderedDict((key.replace("weight", "wieght"), value) for key, value in state.items())


def no_super(m):
    class Net(m.nn.Module):
        def __init__(self):
            self.layer = m.nn.Linear(2, 2)

    Net()


def no_forward(m):
    class Net(m.nn.Module):
        def foward(self, x):
            return x

    Net()(m.zeros(2))


def sgd(parameters):
    return lambda m: m.optim.SGD(parameters(m), lr=0.1)


def embedded(*rows):
    return lambda m: m.nn.Embedding(4, 3)(m.tensor(rows))


CASES = {
    # a layer's input
    "no flatten": (layer(lambda nn: nn.Linear(192, 10), zeros(2, 3, 8, 8)), r"nn\.Flatten\(\)"),
    "no flatten of one": (layer(lambda nn: nn.Linear(192, 9), zeros(3, 8, 8)), r"x\.flatten\(\)"),
    "no flatten, no bias": (
        layer(lambda nn: nn.Linear(192, 10, bias=False), zeros(2, 3, 8, 8)),
        r"192 = 3 \* 8 \* 8",
    ),
    "features": (layer(lambda nn: nn.Linear(5, 10), zeros(2, 3)), "takes 5 features.* has 3"),
    "float64 to Linear": (
        layer(lambda nn: nn.Linear(3, 8), zeros(1, 3, dtype="float64")),
        r"NumPy.*x\.float\(\)",
    ),
    "ints to Linear": (layer(lambda nn: nn.Linear(3, 8), zeros(1, 3, dtype="int64")), "is int64"),
    "float64 to Conv2d": (
        layer(lambda nn: nn.Conv2d(3, 8, 3), zeros(1, 3, 8, 8, dtype="float64")),
        r"x\.float\(\)",
    ),
    "float32 to double": (
        layer(lambda nn: nn.Linear(3, 8).double(), zeros(1, 3)),
        r"parameters are float64.*x\.double\(\)",
    ),
    "NHWC": (layer(lambda nn: nn.Conv2d(3, 8, 3), zeros(2, 9, 9, 3)), r"permute\(0, 3, 1, 2\)"),
    "NHWC of a map": (
        layer(lambda nn: nn.Conv2d(32, 8, 3), zeros(2, 7, 7, 32)),
        r"looks like it: x\.permute\(0, 3, 1, 2\)",
    ),
    "HWC": (layer(lambda nn: nn.Conv2d(3, 8, 3), zeros(9, 9, 3)), r"permute\(2, 0, 1\)"),
    "32 high and wide": (
        layer(lambda nn: nn.Conv2d(32, 8, 3), zeros(1, 16, 32, 32)),
        r"axis 1 are the channels: the input has 16, the layer takes 32$",
    ),
    "short NLC": (
        layer(lambda nn: nn.Conv1d(16, 8, 3), zeros(1, 8, 16)),
        r"has 8, the layer takes 16; if the last axis are the channels: x\.permute\(0, 2, 1\)",
    ),
    "NLC": (layer(lambda nn: nn.Conv1d(3, 8, 3), zeros(2, 9, 3)), r"permute\(0, 2, 1\)"),
    "grey": (layer(lambda nn: nn.Conv2d(3, 8, 3), zeros(2, 1, 9, 9)), r"expand\(-1, 3, -1, -1\)"),
    "channels": (layer(lambda nn: nn.Conv2d(3, 8, 3), zeros(2, 5, 9, 9)), "has 5, the layer.* 3"),
    "channels, transposed": (
        layer(lambda nn: nn.ConvTranspose2d(4, 8, 3), zeros(2, 5, 9, 9)),
        "has 5, the layer takes 4",
    ),
    "no axis for grey": (layer(lambda nn: nn.Conv2d(1, 4, 3), zeros(5, 9, 9)), r"unsqueeze\(1\)"),
    "no channels": (layer(lambda nn: nn.Conv2d(1, 4, 3), zeros(9, 9)), r"x\[None\]"),
    "no colours": (layer(lambda nn: nn.Conv2d(3, 4, 3), zeros(9, 9)), r"x\.expand\(3, -1, -1\)"),
    "rows of pixels": (
        layer(lambda nn: nn.Conv2d(1, 4, 3), zeros(16, 784)),
        r"if each row is an image: x\.view\(-1, 1, 28, 28\)$",
    ),
    "rows of colours": (
        layer(lambda nn: nn.Conv2d(3, 4, 3), zeros(16, 3072)),
        r"x\.view\(-1, 3, 32, 32\)$",
    ),
    "rows of pixels, or one image": (
        layer(lambda nn: nn.Conv2d(1, 4, 3), zeros(64, 100)),
        r"x\.view\(-1, 1, 10, 10\); or, if all are one, add .* channels: x\[None\]$",
    ),
    "rows of features": (
        layer(lambda nn: nn.Conv2d(1, 4, 3), zeros(4, 90)),
        r"takes images, \(N, 1, height, width\).*nn\.Linear\(90, n\)",
    ),
    "image without channels": (
        layer(lambda nn: nn.Conv2d(1, 4, 3), zeros(48, 60)),
        r"^Hint: add the axis of the channels: x\[None\]$",
    ),
    "hidden map of one channel": (
        layer(lambda nn: nn.Sequential(nn.Conv2d(3, 1, 3), nn.Conv2d(3, 8, 3)), zeros(2, 3, 9, 9)),
        r"^Hint: axis 1 are the channels: the input has 1, the layer takes 3$",
    ),
    "an axis missing": (
        layer(lambda nn: nn.Conv2d(3, 4, 3), zeros(1, 3, 64)),
        r"an image is \(1, 3, height, width\), .* \[1, 3, 64\]",
    ),
    "complex to Linear": (
        layer(lambda nn: nn.Linear(3, 8), zeros(1, 3, dtype="complex64")),
        r"is complex64, .*x\.real, x\.abs\(\)",
    ),
    "tuple of LSTM": (
        layer(lambda nn: nn.Linear(4, 1), lambda m: m.nn.LSTM(3, 4)(m.zeros(2, 2, 3))),
        r"out, _ = layer\(x\)$",
    ),
    "two tensors": (
        layer(lambda nn: nn.Linear(4, 1), lambda m: (m.zeros(2, 4), m.ones(2, 4))),
        r"torch\.stack\(x\) for all",
    ),
    "list of images": (
        layer(lambda nn: nn.Linear(9, 1), lambda m: [m.zeros(1, 9, 9)] * 2),
        r"one tensor of the list: torch\.stack\(x\)$",
    ),
    "list of images of other sizes": (
        layer(lambda nn: nn.Linear(9, 1), lambda m: [m.zeros(9, 9), m.zeros(8, 9)]),
        r"other shapes: give them one by one",
    ),
    "nested list of tensors": (
        layer(lambda nn: nn.Linear(4, 1), lambda m: [[m.zeros(4)], 2]),
        "more than tensors",
    ),
    "videos": (layer(lambda nn: nn.Conv2d(3, 4, 3), zeros(2, 5, 3, 9, 9)), r"x\.flatten\(0, 1\)"),
    "weight of a vector": (
        lambda m: m.conv1d(m.zeros(1, 2, 9), m.zeros(3, 2, 3, 3)),
        r"weight has 4 axes, its shape is \[3, 2, 3, 3\].* takes 3: \(C_out, C_in/groups, width\)",
    ),
    "weight of an image": (
        lambda m: m.conv2d(m.zeros(1, 2, 9, 9), m.zeros(3, 2, 3)),
        r"weight has 3 axes, its shape is \[3, 2, 3\].* takes 4: \(C_out, .*, height, width\)",
    ),
    "weight of a volume": (
        lambda m: m.conv3d(m.zeros(1, 2, 9, 9, 9), m.zeros(3, 2, 3, 3)),
        r"weight has 4 axes.* takes 5: \(C_out, C_in/groups, depth, height, width\)",
    ),
    "transposed weight": (
        lambda m: m.conv_transpose2d(m.zeros(1, 2, 9, 9), m.zeros(2, 3, 3)),
        r"weight has 3 axes.* takes 4: \(C_in, C_out/groups, height, width\)",
    ),
    "one row": (layer(lambda nn: nn.BatchNorm1d(3), zeros(1, 3)), r"net\.eval\(\).*drop_last"),
    "one value": (lambda m: m.nn.functional.group_norm(m.zeros(1, 2), 2), r"net\.eval\(\)"),
    "no batch": (layer(lambda nn: nn.BatchNorm2d(3), zeros(3, 9, 9)), r"unsqueeze\(0\)"),
    "ints to softmax": (lambda m: m.tensor([1]).softmax(0), r"x\.float\(\)"),
    "complex to softmax": (lambda m: m.tensor([1j]).softmax(0), r"x\.real, x\.abs"),
    "ints to mean": (lambda m: m.tensor([1]).mean(), r"x\.float\(\)"),
    "scores": (lambda m: m.nn.BCELoss()(m.zeros(2) - 1, m.zeros(2)), "BCEWithLogitsLoss"),
    "no list": (lambda m: m.stack(m.zeros(2), m.zeros(2)), r"torch\.stack\(\[a, b\]\)"),
    "norm of images": (layer(lambda nn: nn.BatchNorm1d(3), zeros(2, 3, 4, 4)), "BatchNorm2d$"),
    "norm of volumes": (layer(lambda nn: nn.BatchNorm1d(3), zeros(2, 3, 4, 4, 4)), "BatchNorm3d$"),
    "steps": (
        loss(zeros(2, 5, 7), zeros(2, 5, dtype="int64")),
        r"cross_entropy\(scores\.transpose\(1, 2\), target\)",
    ),
    "norm": (layer(lambda nn: nn.BatchNorm2d(4), zeros(2, 3, 4, 4)), "has 3 channels.* for 4"),
    # classes and indices
    "float classes": (loss(zeros(4, 10), zeros(4)), r"target\.long\(\).*shape \[4, 10\]"),
    "int32 classes": (loss(zeros(4, 10), zeros(4, dtype="int32")), r"target\.long\(\)"),
    "column": (loss(zeros(4, 10), zeros(4, 1, dtype="int64")), r"target\.squeeze\(1\)"),
    "reduction": (
        lambda m: m.nn.functional.nll_loss(m.zeros(1, 2), m.tensor([0]), reduction="avg"),
        "are 'mean', 'sum' and 'none'",
    ),
    "reduction of kl_div": (
        lambda m: m.nn.functional.kl_div(m.zeros(2), m.zeros(2), reduction="batchmena"),
        "'batchmean', 'mean', 'sum' and 'none'",
    ),
    "two datasets": (lambda m: m.utils.data.DataLoader(m.zeros(2), m.zeros(2)), "TensorDataset"),
    "Keras's fit": (lambda m: m.nn.ReLU().fit(m.zeros(2)), r"loss\(net\(x\), y\)\.backward\(\)"),
    "Keras's predict": (lambda m: m.nn.ReLU().predict(m.zeros(2)), r"net\(x\).*no_grad"),
    "scores of pixels": (loss(zeros(4, 10, 3, 3), zeros(4, dtype="int64")), r"x\.flatten\(1\)"),
    "one-hot": (loss(zeros(4, 10), zeros(4, 10, dtype="int64")), r"target\.argmax\(1\)"),
    "wrong view": (loss(zeros(8, 10), zeros(4, dtype="int64")), r"\[8, 10\].* 4 .*flatten\(1\)"),
    "scores of one": (scores(zeros(4, 1), zeros(4)), r"input\.squeeze\(-1\)"),
    "targets of one": (scores(zeros(4), zeros(4, 1)), r"target\.squeeze\(-1\)"),
    "float rows": (lambda m: m.nn.Embedding(4, 3)(m.zeros(2)), r"x\.long\(\)"),
    "rows": (
        lambda m: m.utils.data.TensorDataset(m.zeros(3, 2), m.zeros(4)),
        "first axes are 3, 4",
    ),
    "from one": (loss(zeros(1, 10), lambda m: m.tensor([10])), "0 to 9; if yours count from 1"),
    "negative": (loss(zeros(1, 10), lambda m: m.tensor([-1])), "ignore_index=-1"),
    "far": (loss(zeros(2, 10), lambda m: m.tensor([1, 12])), "targets are 0 to 9$"),
    "embedding": (embedded(1, 4), "found 4, and indices are 0 to 3"),
    "index_select": (
        lambda m: m.zeros(3).index_select(0, m.tensor([5])),
        "found 5, and indices are 0 to 2",
    ),
    "one_hot": (lambda m: m.nn.functional.one_hot(m.tensor([3]), 3), "found 3.* 0 to 2"),
    "loss class": (
        lambda m: m.nn.CrossEntropyLoss(m.zeros(4, 9), m.zeros(4)),
        r"nn\.CrossEntropyLoss\(\)\(input, target\)",
    ),
    "loss class of another name": (
        lambda m: m.nn.MSELoss(m.zeros(4, 9), m.zeros(4, 9)),
        r"nn\.MSELoss\(\)\(input, target\)",
    ),
    "loss class of three inputs": (
        lambda m: m.nn.MarginRankingLoss(0.0, m.zeros(4), m.zeros(4)),
        r"nn\.MarginRankingLoss\(\)\(input1, input2, target\)",
    ),
    # the graph
    "bool": (lambda m: bool(m.zeros(3) > 1), r"\.any\(\) or \.all\(\)"),
    "no leaf": (without_graph, "requires_grad=True"),
    "no_grad": (inside_no_grad, r"outside torch\.no_grad\(\)"),
    "argmax": (lambda m: m.ones(3, requires_grad=True).argmax().backward(), "floating point"),
    "vector": (lambda m: m.ones(3, requires_grad=True).exp().backward(), r"loss\.mean\(\)"),
    "modified": (changed_exp, "clone the tensor"),
    "leaf": (leaf_in_place, r"torch\.no_grad\(\)"),
    "view of a leaf": (leaf_item, r"torch\.no_grad\(\)"),
    "not recorded": (
        lambda m: m.autograd.grad(m.ones(1, requires_grad=True).sum(), m.ones(1)),
        r"x\.requires_grad_\(\)",
    ),
    # NumPy's habits
    "list": (lambda m: m.from_numpy([1, 2]), r"torch\.tensor\(x\)"),
    "backwards": (lambda m: m.zeros(3)[::-1], r"x\.flip\(0\)"),
    # modules
    "clipped layers": (
        lambda m: m.nn.utils.clip_grad_norm_(m.nn.Sequential(m.nn.Linear(2, 2)), 1.0),
        r"module\.parameters\(\)",
    ),
    "saved the other way round": (
        lambda m: m.save("net.pt", {}),
        r"torch\.save\(object, path\)",
    ),
    "parameter": (assigned, r"nn\.Parameter\(tensor\).*module\.weight\.copy_\(tensor\)"),
    "registered": (
        lambda m: m.nn.Module().register_parameter("w", m.zeros(2)),
        r"nn\.Parameter\(tensor\)",
    ),
    "clipped module": (
        lambda m: m.nn.utils.clip_grad_norm_(m.nn.Linear(2, 2), 1.0),
        r"module\.parameters\(\)",
    ),
    "no super": (no_super, r"super\(\)\.__init__\(\)"),
    "misspelt forward": (no_forward, "is 'foward' meant to be 'forward'"),
    "list of modules": (lambda m: m.nn.Sequential([m.nn.ReLU()]), r"Sequential\(\*layers\)"),
    "holder": (lambda m: m.nn.ModuleList([])(m.zeros(2)), "only holds modules"),
    # optimizers
    "module": (sgd(lambda m: m.nn.Linear(2, 2)), r"module\.parameters\(\)"),
    "names": (sgd(lambda m: dict(m.nn.Linear(2, 2).named_parameters())), r"dictionary\.values"),
    "one tensor": (sgd(lambda m: m.zeros(2)), r"\[tensor\]"),
    "nothing": (sgd(lambda m: m.nn.ReLU().parameters()), r"used up.*nn\.ModuleList"),
    "not called": (sgd(lambda m: m.nn.Linear(2, 2).parameters), r"module\.parameters\(\)"),
    "computed": (sgd(lambda m: [m.nn.Linear(2, 2).weight * 2]), "make a leaf"),
    # states
    "prefix": (
        loaded(lambda m, state: {"module." + key: value for key, value in state.items()}),
        r"prefix 'module\.', of nn\.DataParallel",
    ),
    "prefix missing": (
        loaded(lambda m, state: {key.removeprefix("0."): value for key, value in state.items()}),
        r"module's keys have the prefix '0\.'",
    ),
    "misspelt key": (loaded(renamed), r"is '0\.wieght' meant to be '0\.weight'"),
    "swapped": (
        loss(lambda m: m.tensor([0, 1]), zeros(2, 3)),
        r"scores come first.*cross_entropy\(net\(x\), y\)",
    ),
    "checkpoint": (
        loaded(lambda m, state: {"epoch": 3, "net": state}),
        r"load_state_dict\(checkpoint\['net'\]\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_error_has_the_hint(case):
    action, expected = CASES[case]
    found = hint(action, convcore)
    assert re.search(expected, found), found
    assert found.startswith("Hint: ")


@pytest.mark.parametrize("case", CASES)
def test_text_is_pytorchs(torch, case):
    action, _ = CASES[case]
    same_error(torch, action)


def test_what_is_no_tensor_can_be_converted():
    net = nn.Linear(3, 2)
    assert "module.parameters()" in hint(optim.SGD, nn.Sequential(net), lr=0.1)
    assert "torch.from_numpy(x)" in hint(net, np.zeros((1, 3)))
    assert "torch.from_numpy(x)" in hint(nn.Conv2d(3, 2, 1), np.zeros((1, 3, 4, 4)))
    assert "torch.tensor(x)" in hint(convcore.relu, [1.0])
    assert hint(convcore.relu, convcore.rand(2, 3).max(1)).endswith("(values, indices): x.values")
    attended = nn.MultiheadAttention(3, 1)(*[convcore.zeros(1, 1, 3)] * 3)
    assert "out, _ = layer(x)" in hint(net, attended)
    assert "ReLU()" in hint(nn.Sequential, net, nn.ReLU)
    assert "nn.ReLU()" in hint(nn.Sequential, net, convcore.relu)
    assert "other.state_dict()" in hint(net.load_state_dict, net)
    assert "torch.load(path)" in hint(net.load_state_dict, "net.pt")
    assert hint(convcore.relu, None) == ""


def test_the_dtype_of_a_module_may_be_pythons_and_not_a_string():
    assert nn.Linear(2, 2).to(dtype=float).weight.dtype is convcore.float64
    assert "torch.float64" in hint(nn.Linear(2, 2).to, dtype="float64")


@pytest.mark.parametrize("make", [convcore.zeros, convcore.tensor, convcore.arange])
def test_a_dtype_in_quotes_is_named_without(make):
    assert "torch.float32" in hint(make, 2, dtype="float32")
    assert hint(make, 2, dtype="x") == ""


def test_a_copy_of_a_computed_weight_names_what_keeps_one():
    layer = nn.Linear(2, 2)
    nn.utils.prune.l1_unstructured(layer, "weight", 0.5)
    assert "prune.remove(layer, 'weight')" in hint(copy.deepcopy, layer)
    nn.utils.prune.remove(layer, "weight")
    assert copy.deepcopy(layer).weight.equal(layer.weight)


def test_what_saves_a_net_is_named():
    told = hint(getattr, nn.Sequential(nn.ReLU()), "save")
    assert "torch.save(net.state_dict(), file)" in told and "onnx.export" in told


def test_forward_mode_is_told_jvp():
    from convcore._errors.scope import reason

    assert "autograd.functional.jvp" in reason("torch.autograd.forward_ad.dual_level")


def test_where_takes_both_sides_or_none():
    x = convcore.zeros(2)
    for sides in ((x,), (None, x)):
        assert "takes both, or neither" in hint(convcore.where, x > 0, *sides)


def test_error_within_linear_that_is_no_mismatch_has_no_hint():
    def refuse(tensor):
        raise RuntimeError("no")

    with convcore.autograd.graph.saved_tensors_hooks(refuse, refuse):
        assert hint(nn.Linear(3, 2), convcore.ones(1, 3, requires_grad=True)) == ""


def test_what_takes_no_keywords_says_so():
    assert hint(nn.Sequential, a=nn.ReLU()) == "Hint: it takes no keywords"


def test_a_device_of_another_name_is_told_which_to_take():
    assert '"cuda" if torch.cuda.is_available() else "cpu"' in hint(convcore.device, "gpu")


def test_dtype_in_place_of_a_device():
    assert "torch.float32" in hint(convcore.zeros(2).to, "float32")
    assert "dtypes are no strings" not in hint(convcore.zeros(2).to, "gpu")


@pytest.mark.parametrize("move", [nn.Linear(2, 2).cuda, lambda: convcore.zeros(2, device="mps")])
def test_device_that_is_not_there(move):
    assert "torch.cuda.is_available()" in hint(move)


def test_loader_names_the_sample_that_failed():
    class Failing(Samples):
        def __getitem__(self, number):
            return super().__getitem__(number) if number < 6 else [][number]

    assert hint(list, DataLoader(Failing(None), batch_size=4)) == "Hint: it came from dataset[6]"


def test_other_forms_of_indices_and_batches_keep_their_errors():
    class Batched(Samples):
        def __getitems__(self, numbers):
            return convcore.zeros(len(numbers), 2)

    def refuse(batch):
        raise TypeError("no")

    assert hint(list, DataLoader(Batched(None), batch_size=4, collate_fn=refuse)) == ""
    loader = DataLoader(Samples(None), batch_sampler=[range(14, 18)])
    assert hint(list, loader) == ""
    numbers = (number for number in [16, 17])
    assert hint(list, DataLoader(Samples(None), batch_sampler=[numbers])) == ""


class Samples(Dataset):
    def __init__(self, odd):
        self.odd = odd

    def __len__(self):
        return 20

    def __getitem__(self, number):
        return self.odd if number == 17 else (convcore.zeros(2), 1)


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        (None, r"dataset\[17\] returned None"),
        ((convcore.zeros(2), None), r"dataset\[17\]\[1\] is None"),
        ((convcore.zeros(3), 1), r"dataset\[16\] has shape \[2\], dataset\[17\] has shape \[3\]"),
    ],
)
def test_loader_names_the_sample(odd, expected):
    assert re.search(expected, hint(list, DataLoader(Samples(odd), batch_size=4)))
    threads = DataLoader(
        Samples(odd), batch_size=4, num_workers=1, multiprocessing_context="thread"
    )
    with pytest.raises((TypeError, RuntimeError), match=expected):  # as text, from the worker
        list(threads)


UNKNOWN = {
    "Conv2d": (lambda: nn.Conv2d(3, 8, kernal_size=3), "kernel_size"),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(3, 8, 3, strides=3), "stride"),
    "MaxPool2d": (lambda: nn.MaxPool2d(kernel_sizes=3), "kernel_size"),
    "Linear": (lambda: nn.Linear(3, 8, biass=False), "bias"),
    "Adam": (lambda: optim.Adam([convcore.zeros(1)], beta=(0.9, 0.99)), "betas"),
    "StepLR": (lambda: optim.lr_scheduler.StepLR(None, stepsize=2), "step_size"),
    "DataLoader": (lambda: DataLoader([1], batchsize=2), "batch_size"),
    "LSTM": (lambda: nn.LSTM(2, 3, batchfirst=True), "batch_first"),
    "GRU": (lambda: nn.GRU(2, 3, bidirectionl=True), "bidirectional"),
    "RNN": (lambda: nn.RNN(2, 3, nonlinearty="relu"), "nonlinearity"),
    "autocast": (lambda: convcore.autocast("cpu", dtpe=convcore.bfloat16), "dtype"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_keyword_suggests_one_of_the_public_class(name):
    call, meant = UNKNOWN[name]
    with pytest.raises(TypeError) as caught:
        call()
    start = rf"{name}\.__init__\(\) got an unexpected keyword argument '\w+'"
    assert re.fullmatch(rf"{start}\. Did you mean '{meant}'\?", str(caught.value))


def test_unknown_keyword_like_none_lists_them():
    assert "lr, momentum" in hint(optim.SGD, [convcore.zeros(1)], speed=0.1)


@pytest.mark.parametrize(
    ("room", "name", "meant"),
    [
        (convcore, "array", "torch.tensor"),
        (convcore, "expand_dims", "torch.unsqueeze"),
        (nn, "Dense", "nn.Linear"),
    ],
)
def test_names_of_other_libraries_suggest_pytorchs(room, name, meant):
    assert hint(getattr, room, name) == f"Hint: use {meant}"


@pytest.mark.parametrize(
    ("call", "keyword", "meant"),
    [
        (inspection.capture, "layers", "select"),
        (inspection.attribution.saliency, "targets", "target"),
        (inspection.pictures.kernels, "titel", "title"),
        (convcore.backends.conv.flags, "algoritm", "algorithm"),
        (convcore.optimize_for_inference, "precison", "precision"),
        (convcore.nn.functional.normalize, "epsilon", "eps"),
    ],
)
def test_unknown_keyword_of_a_function_suggests_one(call, keyword, meant):
    with pytest.raises(TypeError) as caught:
        call(**{keyword: 1})
    assert re.search(rf"[Dd]id you mean '{meant}'", str(caught.value))
    assert not str(caught.value).startswith("_")  # a private name


def test_functions_that_hint_at_keywords_can_be_pickled():
    assert pickle.loads(pickle.dumps(inspection.capture)) is inspection.capture


def test_keywords_of_other_libraries_suggest_pytorchs():
    for name, meant in {"learning_rate": "lr", "epsilon": "eps"}.items():
        with pytest.raises(TypeError) as caught:
            optim.Adam([convcore.zeros(1)], **{name: 0.1})
        assert f"'{meant}'" in str(caught.value)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Python's own text, without our note")
@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda x: convcore.sum(x, dims=1), "did you mean 'dim'"),
        (lambda x: convcore.matmul(x, oter=x), "did you mean 'other'"),
        (lambda x: convcore.masked_select(x, maks=x > 0), "did you mean 'mask'"),
        (lambda x: nn.ReLU()(inptu=x), "did you mean 'input'"),
        (lambda x: x.sum(dmi=1), "did you mean 'dim'"),
        (lambda x: x.sum().backward(retain=True), "did you mean 'retain_graph'"),
        (lambda x: convcore.load("net.pt", weight_only=True), "Did you mean 'weights_only'"),
        (lambda x: convcore.save(x, "net.pt", metadat={}), "did you mean 'metadata'"),
        (lambda x: nn.Linear(2, 2)(x=x), "it takes input$"),
        (lambda x: convcore.compile(x, mod="fast"), "did you mean 'mode'"),
        (lambda x: convcore.vmap(x, indims=1), "did you mean 'in_dims'"),
        (lambda x: convcore.onnx.export(nn.ReLU(), x, opset=17), "Did you mean 'opset_version'"),
    ],
)
def test_unknown_keyword_of_a_call_suggests_one(call, meant):
    with pytest.raises(TypeError, match=meant):
        call(convcore.zeros(2, 2))


def test_unknown_keyword_inside_a_module_is_not_that_of_the_module():
    class Net(nn.Module):
        def forward(self, biass):
            return dict.fromkeys(biass, bias=1)

    assert "biass" not in hint(Net(), [1])


@pytest.mark.parametrize("layer", [nn.Conv2d(1, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.MSELoss()])
def test_missing_argument_of_a_call_names_the_public_class(layer):
    with pytest.raises(TypeError, match=rf"^{type(layer).__name__}\.forward\(\) missing"):
        layer()


def test_missing_argument_names_the_public_class():
    with pytest.raises(TypeError, match=r"^Conv2d\.__init__\(\) missing 1 .*'kernel_size'"):
        nn.Conv2d(3, 8)


def test_constructor_passes_what_other_bases_take():
    class Sized(nn.Module, dict):
        def __init__(self, size, **more):
            super().__init__()
            self.size, self.more = size, more

    assert Sized(3, other=4).more == {"other": 4}


def test_options_behind_any_number_of_arguments_are_given_once():
    class Chain(nn.Module):
        def __init__(self, *layers, scale=1):
            super().__init__()
            self.found = len(layers), scale

    assert Chain("a", "b", scale=3).found == (2, 3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'scales'"):
        Chain("a", "b", scales=3)


MISSING = [
    (lambda: convcore.fft, "torch.fft is out of scope for convcore: use numpy.fft"),
    (lambda: convcore.export, "optimize_for_inference"),
    (lambda: nn.quantized, "ONNX Runtime"),
    (lambda: nn.functional.gumbel_softmax_, ""),
    (lambda: convcore.linalg.tensorsolve_, ""),
    (lambda: convcore.linalg.ldl_factor, "torch.linalg.ldl_factor is missing"),
    (lambda: convcore.special.airy_ai, "torch.special.airy_ai is missing"),
    (lambda: convcore.cuda.CUDAGraph, "use device 'cpu'"),
    (lambda: convcore.backends.nnpack, "torch.backends.nnpack is missing"),
    (lambda: convcore.distributed.DeviceMesh, "processes are MPI's"),
    (lambda: convcore.onnx.ExportableModule, "one run of a net is recorded, by `onnx.export`"),
    (lambda: convcore.onnx.TrainingMode, "one run of a net is recorded, by `onnx.export`"),
    (lambda: convcore.monitor, "`convcore.inspection.profile`"),
    (lambda: convcore.autograd.profiler, "`convcore.inspection.profile`"),
    (lambda: convcore.utils.benchmark, "`convcore bench`"),
]


@pytest.mark.parametrize(("look", "expected"), MISSING)
def test_missing_name_of_pytorch_is_explained(look, expected):
    assert expected in hint(look)
    assert bool(expected) == bool(hint(look))


@pytest.mark.parametrize(
    ("room", "name", "meant"),
    [
        (nn, "Conv2D", "Conv2d"),
        (nn, "Relu", "ReLU"),
        (nn.functional, "rellu", "relu"),
        (optim, "Adamm", "Adam"),
        (optim, "Adma", "Adam"),
        (nn, "BatchNorm", "BatchNorm2d"),
        (nn, "Con1d", "Conv1d"),
        (convcore, "ones_lik", "ones_like"),
        (convcore, "uniform", "Tensor.uniform_"),
        (nn, "relu", "functional.relu"),
        (convcore, "Adam", "optim.Adam"),
        (inspection, "grad_cam", "attribution.grad_cam"),
        (optim.lr_scheduler, "CosineLR", "CosineAnnealingLR"),
        (nn.init, "kaiming_norm_", "kaiming_normal_"),
        (nn.utils.prune, "random_unstructurd", "random_unstructured"),
        (convcore.amp, "Scaler", "GradScaler"),
    ],
)
def test_modules_say_themselves_which_name_was_meant(room, name, meant):
    with pytest.raises(AttributeError) as caught:
        getattr(room, name)
    assert str(caught.value).endswith(f"has no attribute '{name}'. Did you mean '{meant}'?")
    printed = "".join(traceback.format_exception_only(caught.value))
    assert printed.count("Did you mean") == 1  # Python would say it again
    assert caught.value.name == name
    assert not hasattr(room, name)


@pytest.mark.parametrize(
    ("owner", "name", "meant"),
    [
        (convcore.zeros(1), "requires_gard", "requires_grad"),
        (nn.Linear(2, 2), "wieght", "weight"),
        (nn.Sequential(OrderedDict(encoder=nn.ReLU())), "encodre", "encoder"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_python_can_suggest_an_attribute(owner, name, meant):
    with pytest.raises(AttributeError) as caught:
        getattr(owner, name)
    assert (caught.value.name, caught.value.obj) == (name, owner)  # which its suggestions need
    assert meant in dir(owner)
    if sys.version_info >= (3, 12):
        assert f"'{meant}'" in "".join(traceback.format_exception_only(caught.value))


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        ("convcore", "tensr", "tensor"),
        ("convcore.nn", "Conv2D", "Conv2d"),
        ("convcore.nn.functional", "conv2D", "conv2d"),
        ("convcore.optim", "Adamm", "Adam"),
        ("convcore.inspection", "sumary", "summary"),
    ],
)
def test_a_misspelt_import_says_what_was_meant(module, name, meant):
    with pytest.raises(ImportError) as caught:
        exec(f"from {module} import {name}", {})
    text = str(caught.value)
    assert text.startswith(f"cannot import name {name!r} from {module!r}")
    assert text.endswith(f"Did you mean {meant!r}?") and caught.value.name == module
    assert not hasattr(sys.modules[module], name)


def test_an_import_of_what_only_pytorch_has_is_explained():
    with pytest.raises(ImportError) as caught:
        exec("from convcore.special import airy_ai", {})
    assert "torch.special.airy_ai is missing" in str(caught.value)


MISSPELT = {
    "zeros": lambda: convcore.zeros(2, dtyp=convcore.int64),
    "tensor": lambda: convcore.tensor([2], dtyp=convcore.int64),
    "arange": lambda: convcore.arange(2, dtyp=convcore.int64),
    "ones_like": lambda: convcore.ones_like(convcore.zeros(2), dtyp=convcore.int64),
    "randn": lambda: convcore.randn(2, dtyp=convcore.float64),
}


@pytest.mark.parametrize("name", MISSPELT)
def test_misspelt_keywords_of_new_tensors_get_a_hint(name):
    with pytest.raises(TypeError) as caught:
        MISSPELT[name]()
    # Python 3.13 says it in its own text, too.
    assert "'dtype'" in str(caught.value)


def test_misspelt_keywords_of_backward_get_a_hint():
    x = convcore.ones(1, requires_grad=True)
    assert "retain_graph" in hint(x.backward, retain=True)
    assert "retain_graph" in hint(convcore.autograd.grad, x, x, retain=True)
    assert "'seed'" in hint(convcore.manual_seed, sed=1) or sys.version_info >= (3, 13)


@pytest.mark.filterwarnings("default")
def test_warnings_of_backward_and_arrays_name_the_callers_line():
    x = convcore.ones(1, requires_grad=True)
    array = np.ones(2)
    array.flags.writeable = False
    with pytest.warns() as caught:
        (x * x).backward(create_graph=True)
        convcore.autograd.backward(x * x, grad_variables=convcore.ones(1))
        convcore.from_numpy(array)
    assert [each.filename for each in caught] == [__file__] * 3


def test_the_hint_is_the_last_line_of_the_message():
    with pytest.raises(RuntimeError) as caught:
        bool(convcore.zeros(2))
    text, hint = str(caught.value).split("\n")
    assert text == "Boolean value of Tensor with more than one value is ambiguous"
    assert hint.startswith("Hint: use .any() or .all()")
    copied = pickle.loads(pickle.dumps(caught.value))
    assert str(copied) == str(caught.value) and not hasattr(caught.value, "__notes__")


def test_errors_with_a_message_of_their_own_get_the_hint_as_a_note():
    error = hinted(hinted(KeyError("a"), "try b"), "try b")
    assert error.args == ("a",) and error.__notes__ == ["Hint: try b"]
    missing = hinted(ModuleNotFoundError("no a", name="a"), "try b")
    assert str(missing) == "no a\nHint: try b" and missing.name == "a"


def test_keys_are_meant_where_shapes_agree():
    net = nn.Sequential(nn.Conv2d(3, 8, 3))
    other = OrderedDict({"c.weight": convcore.zeros(8, 3, 3, 3), "fc.bias": convcore.zeros(9)})
    assert hint(net.load_state_dict, other) == "Hint: is 'c.weight' meant to be '0.weight'?"


def test_what_is_given_where_a_layer_is_made_goes_to_its_call():
    x = convcore.ones(2, 3)
    assert "nn.ReLU()(x)" in hint(nn.ReLU, x)
    assert hint(nn.CrossEntropyLoss, x, convcore.tensor([0, 1])).count("Hint: ") == 1


def test_layers_of_an_optimized_net_are_inside():
    fast = convcore.optimize_for_inference(nn.Sequential(OrderedDict(conv=nn.Conv2d(1, 1, 1))))
    assert ".model.conv" in hint(getattr, fast, "conv")
    assert hint(getattr, fast, "cnov") == ""


def test_a_folder_that_is_not_there_is_named(tmp_path):
    folder = tmp_path / "no"
    with pytest.raises(
        FileNotFoundError, match=re.escape(f"(there is no directory {str(folder)!r})")
    ):
        convcore.save(1, folder / "a.pt")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: nn.Conv2d(3, 8, 3.0),
            r"'kernel_size' must be an int or a tuple of ints, got 3\.0",
        ),
        (lambda: nn.Conv2d(3, 8, "3"), "'kernel_size' must be an int or a tuple of ints, got '3'"),
        (
            lambda: nn.Conv3d(3, 8, 3, stride=(1, "2", 1)),
            r"Conv3d\(\): argument 'stride' must be .*, got \(1, '2', 1\)",
        ),
        (lambda: nn.Conv1d(3, 8, 3, padding=1.5), r"'padding' must be an int .*, got 1\.5"),
        (
            lambda: nn.ConvTranspose2d(3, 8, 3, output_padding="1"),
            "'output_padding' must be an int",
        ),
    ],
)
def test_layers_name_what_they_cannot_be_made_of(make, says):
    with pytest.raises(TypeError, match=says):
        make()


def test_channels_that_groups_do_not_divide_are_told():
    assert "in_channels is 3, groups is 2" in hint(nn.Conv2d, 3, 8, 3, groups=2)
    assert "out_channels is 3, groups is 2" in hint(nn.Conv2d, 2, 3, 3, groups=2)


def test_a_file_that_is_no_checkpoint_is_named(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(convcore.serialization.CheckpointError, match=r"notes\.txt': it is no zip"):
        convcore.load(tmp_path / "notes.txt")


MISPLACED = {
    "an argument twice": (
        lambda: DataLoader([1], [2], batch_size=2),
        "the arguments before the keywords are dataset, batch_size",
    ),
    "more than there are": (
        lambda: inspection.capture(nn.Linear(2, 3), "a", "b"),
        "its arguments are model, select, of",
    ),
    "a tuple of inputs": (
        lambda: convcore.optimize_for_inference(nn.Linear(2, 3), (convcore.ones(1, 2),)),
        "inputs stand one by one, as in a call of the net: optimize_for_inference(model, x)",
    ),
    "inputs by keyword": (
        lambda: convcore.optimize_for_inference(nn.Linear(2, 3), example_inputs=convcore.ones(2)),
        "example_inputs stand one by one, without a keyword",
    ),
    "a precision for an input": (
        lambda: convcore.optimize_for_inference(nn.Linear(2, 3), "bf16"),
        "bfloat16 has a keyword: optimize_for_inference(model, precision='bf16')",
    ),
    "a dtype for an input": (
        lambda: convcore.optimize_for_inference(nn.Linear(2, 3), convcore.bfloat16),
        "bfloat16 has a keyword",
    ),
    "a layer without maps": (
        lambda: inspection.attribution.grad_cam(
            convcore.models.lenet(), convcore.rand(1, 1, 28, 28), "fc1"
        ),
        "the last of the layers that put out maps is 'conv2_drop'",
    ),
    "an array for a dataset": (
        lambda: TensorDataset(np.zeros(3, "float32")),
        "make a tensor of the array: torch.from_numpy(x)",
    ),
    "one tensor for an LSTM's state": (
        lambda: nn.LSTM(3, 4)(convcore.rand(5, 2, 3), convcore.rand(1, 2, 4)),
        "the state of an LSTM is a pair, (h_0, c_0)",
    ),
    "an LSTM's state for a GRU": (
        lambda: nn.GRU(3, 4)(convcore.rand(5, 2, 3), (convcore.rand(1, 2, 4),) * 2),
        "the state of a GRU or RNN is one tensor, h_0",
    ),
    "all that was captured": (
        lambda: inspection.pictures.feature_maps({"conv1": convcore.ones(1, 2, 3, 3)}),
        "take one of what it holds: maps['conv1']",
    ),
    "steps that are none": (
        lambda: inspection.pictures.histograms({"conv1": convcore.ones(1, 2, 3, 3)}),
        "one step's is a list of one: [found['conv1']]",
    ),
    "sizes for an input of a model": (
        lambda: convcore.onnx.export(nn.Linear(2, 3), (1, 2), io.BytesIO()),
        "of random numbers it is torch.rand(1, 2)",
    ),
    "an array for an input of a model": (
        lambda: convcore.onnx.export(nn.Linear(2, 3), np.ones((1, 2), "float32"), io.BytesIO()),
        "make a tensor of the array: torch.from_numpy(x)",
    ),
    "sizes for an input": (
        lambda: inspection.report(nn.Linear(2, 3), (1, 2), "net.html"),
        "of random numbers it is torch.rand(1, 2)",
    ),
}


@pytest.mark.parametrize("name", MISPLACED)
def test_misplaced_arguments_get_a_hint(name):
    call, meant = MISPLACED[name]
    assert meant in hint(call)


@pytest.mark.parametrize(
    ("name", "keyword", "meant"),
    [
        ("to", "dtyp", "dtype"),
        ("parameters", "recursive", "recurse"),
        ("state_dict", "prefixes", "prefix"),
        ("register_forward_hook", "always", "always_call"),
    ],
)
def test_methods_of_modules_name_the_keyword_that_was_meant(name, keyword, meant):
    net = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(TypeError, match=rf"^Module\.{name}\(\) .* '{keyword}'") as caught:
        getattr(net, name)(**{keyword: 1})
    told = str(caught.value)
    assert re.search(f"[Dd]id you mean '{meant}'", told)


def test_keywords_of_pickle_are_taken_by_load():
    file = io.BytesIO()
    convcore.save({"a": 1}, file)
    file.seek(0)
    assert convcore.load(file, encoding="latin1", fix_imports=True) == {"a": 1}


def test_errors_name_the_layer_and_its_argument():
    with pytest.raises(TypeError, match=r"Linear\(\): argument 'in_features' .* be int, not str"):
        nn.Linear("3", 2)
    with pytest.raises(TypeError, match=r"flatten\(\): argument 'input' .* be Tensor, not int"):
        nn.Flatten()(5)
    with pytest.raises(TypeError, match=r"^Tensor\.where\(\) missing 1 required"):
        convcore.ones(2).where(convcore.ones(2) > 0)


FAILING = {
    "missing attribute": lambda net, x: net.fit,
    "not a module": lambda net, x: net.add_module("two", x),
    "not a parameter": lambda net, x: setattr(net, "weight", x),
    "not a state": lambda net, x: net.load_state_dict([x]),
    "a module to an optimizer": lambda net, x: convcore.optim.SGD(net, 0.1),
    "no graph": lambda net, x: x.sum().backward(),
    "not a scalar": lambda net, x: net(x).backward(),
    "not a tensor": lambda net, x: convcore.nn.functional.relu(net),
    "targets of floats": lambda net, x: convcore.nn.functional.cross_entropy(net(x), x[:, 0]),
    "a parameter in place": lambda net, x: net.weight.add_(1),
    "an index outside": lambda net, x: x.index_select(0, convcore.tensor([7])),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_failed_call_keeps_nothing_alive(name):
    """An error kept in a local name would hold its own traceback, and all that was at hand."""
    net, x = convcore.nn.Linear(3, 2), convcore.ones(2, 3)
    gone = weakref.ref(net), weakref.ref(x)
    gc.collect()
    gc.disable()
    try:
        try:
            FAILING[name](net, x)
        except Exception:
            pass
        else:
            pytest.fail("nothing was raised")
        del net, x
        assert [each() for each in gone] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("convcore.fft", "torch.fft is out of scope for convcore: use numpy.fft"),
        ("convcore.sparse", "use scipy.sparse"),
        ("convcore.nn.quantized.functional", "use ONNX Runtime"),
        ("convcore.nn.attention.bias", "PyTorch has it"),
        ("convcore._inductor", "kernels are compiled in advance"),
        ("convcore.no_such_module", ""),
    ],
)
def test_import_of_a_module_that_is_not_here_is_explained(module, expected):
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'convcore\.") as caught:
        importlib.import_module(module)
    assert expected in hints(caught) and bool(expected) == bool(hints(caught))


def test_import_of_a_misspelt_module_says_what_was_meant():
    with pytest.raises(ModuleNotFoundError, match=r"'convcore\.optmi'\. Did you mean 'optim'\?"):
        importlib.import_module("convcore.optmi")


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_each_module_of_pytorchs_is_here_or_its_import_is_explained():
    lists = pytorch.public()
    unexplained = set()
    for module in lists["modules"] | lists["private"]:
        with contextlib.suppress(ImportError):
            try:
                importlib.import_module(module.replace("torch", "convcore", 1))
            except ImportError as error:
                if "\nHint: " not in str(error) and "pip install" not in str(error):
                    unexplained.add(module)
    assert not unexplained


def test_who_asks_whether_a_module_is_here_is_told_no():
    assert importlib.util.find_spec("convcore.fft") is None


def test_a_backend_of_pytorchs_is_told_how_processes_are_joined():
    join = convcore.distributed.init_process_group
    assert "convcore computes on the CPU: leave the backend out" in hint(join, "nccl")
    assert hint(join, "gloo") == (
        "Hint: leave the backend out, and start the program by `mpiexec -n 2 python train.py`"
    )


def test_a_model_in_onnxs_format_is_told_its_reader():
    for rest in (b"\x12\x07pytorch:\x00", b":\x00", b"B\x02\x10\x11"):
        file = io.BytesIO(b"\x08\x0a" + rest)
        assert "convcore.onnx.load" in hint(convcore.load, file)
        assert "convcore.onnx.load" in hint(convcore.load, file, weights_only=False)


def test_an_array_in_numpys_format_is_told_its_reader(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.ones(3))
    assert "torch.from_numpy(numpy.load(file))" in hint(convcore.load, path)
    assert "torch.from_numpy(numpy.load(file))" in hint(convcore.load, path, weights_only=False)


def test_files_opened_as_text_are_told_the_mode(tmp_path):
    path = tmp_path / "a.pt"
    with open(path, "w") as file:
        assert "open(path, 'wb')" in hint(convcore.save, {}, file)
    convcore.save({"a": convcore.ones(2)}, path)
    with open(path) as file, pytest.raises(TypeError, match="opened in binary mode") as caught:
        convcore.load(file)
    assert hints(caught) == "Hint: open it by open(path, 'rb')"


@pytest.mark.parametrize("place", ["cuda", "cuda:0", convcore.device("cuda")])
def test_a_checkpoint_is_put_on_no_device_that_is_not_there(place):
    file = io.BytesIO()
    convcore.save(convcore.ones(2), file)
    with pytest.raises(RuntimeError, match=f"device '{place}' is not available") as caught:
        convcore.load(file, map_location=place)
    assert hints(caught) == hint(convcore.ones(2).to, "cuda")
    for allowed in ("cpu", convcore.device("cpu"), None, {"cuda:0": "cpu"}, lambda one, _: one):
        assert convcore.load(file, map_location=allowed).tolist() == [1, 1]


def test_arrays_of_whole_numbers_are_not_sent_to_floats():
    scores = convcore.rand(2, 3)
    given = hint(nn.functional.cross_entropy, scores, np.array([0, 1]))
    assert given.endswith("torch.from_numpy(x)")
    assert "float()" in hint(nn.functional.relu, np.zeros(2))


def test_a_name_from_the_wrong_place_is_told_the_right_one():
    assert "use torch.as_tensor" in hint(lambda: convcore.from_torch)
    assert "use torch.onnx.load" in hint(lambda: convcore.load_onnx)
    assert "use torch.utils.data.DataLoader" in hint(lambda: nn.DataLoader)


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("functional", "use nn.functional"),
        ("lr_scheduler", "use optim.lr_scheduler"),
        ("loss", "use nn"),
        ("transforms", "use torchvision, which runs on convcore under `convcore run`"),
    ],
)
def test_a_module_from_the_wrong_place_is_told_the_right_one(module, expected):
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(f"convcore.{module}")
    text, hint = str(caught.value).split("\nHint: ")
    assert text == f"No module named 'convcore.{module}'"
    assert expected in hint
