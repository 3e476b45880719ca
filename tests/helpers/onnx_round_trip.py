"""Fine-tuned ONNX models: trained a few steps, written back, and compared with what they were."""

from pathlib import Path

import numpy as np
import onnx
from onnx import external_data_helper, numpy_helper
from onnx_nets import session_of

import convcore
from convcore.onnx import load, save
from convcore.onnx.external import is_external
from convcore.onnx.reading import tensors_of_model

# The first step's length, relative to that of all weights.
STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def by_runtime(path, inputs):
    """Return ONNX Runtime's results of a model for inputs by name."""
    return session_of(path).run(None, inputs)


def arguments(net, inputs):
    """Return a net's inputs, which are given by name, in its order."""
    return [convcore.from_numpy(inputs[name]) for name in net.input_names]


def by_net(net, inputs):
    """Return a net's results for the same inputs."""
    with convcore.no_grad():
        found = net(*arguments(net, inputs))
    return [each.numpy() for each in (found if isinstance(found, tuple) else (found,))]


def distance(ours, theirs):
    """Return the largest difference of two lists of results, relative to their largest element."""
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        a, b = a.astype(np.float64), b.astype(np.float64)
        assert np.isfinite(b).all()
        worst = max(worst, np.abs(a - b).max(initial=0) / max(1, np.abs(b).max(initial=0)))
    return worst


def train(net, inputs, steps=10):
    """Take SGD steps of which each lowers a loss; return the losses.

    The loss is a random linear function of the outputs, relative to their spread.
    """
    rng = np.random.default_rng(0)
    given = arguments(net, inputs)
    factors = [
        convcore.from_numpy(
            (rng.standard_normal(y.shape) / (y.size * (y.std() or 1))).astype(y.dtype)
        )
        for y in by_net(net, inputs)
        if y.dtype.kind == "f"
    ]
    state = {name: value.clone() for name, value in net.state_dict().items()}
    trained = [each for each in net.parameters() if each.requires_grad]

    def loss_of(found):
        found = found if isinstance(found, tuple) else (found,)
        outputs = [each for each in found if each.is_floating_point()]
        return sum((y * factor).sum() for y, factor in zip(outputs, factors, strict=True))

    loss_of(net(*given)).backward()
    slope = sum(float((p.grad.double() ** 2).sum()) for p in trained if p.grad is not None)
    size = sum(float((p.detach().double() ** 2).sum()) for p in trained)
    for step in STEPS:
        net.load_state_dict(state)
        optimizer, losses = convcore.optim.SGD(trained, step * (size / slope) ** 0.5), []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = loss_of(net(*given))
            losses.append(loss.item())
            loss.backward()
            optimizer.step()
        losses.append(loss_of(net(*given)).item())
        if (np.diff(losses) < 0).all():
            return losses
    raise AssertionError(f"no steps lower the loss each time: {losses}")


def bytes_of(tensor, folder):
    """Return a stored tensor's bytes, as the model has them."""
    if is_external(tensor):
        info = external_data_helper.ExternalDataInfo(tensor)
        data = (Path(folder) / info.location).read_bytes()[info.offset or 0 :]
        return data[: info.length] if info.length else data
    return numpy_helper.to_array(tensor).tobytes()


def changed_tensors(old, new):
    """Return the names of the stored tensors that differ between two files; nothing else may."""
    one, other = (onnx.load(path, load_external_data=False) for path in (old, new))
    changed = set()
    for a, b in zip(tensors_of_model(one), tensors_of_model(other), strict=True):
        if bytes_of(a, Path(old).parent) != bytes_of(b, Path(new).parent):
            changed.add(a.name)
            for field in ("raw_data", "float_data", "double_data", "int32_data"):
                present = len(getattr(a, field))
                assert present == len(getattr(b, field)), f"{a.name} is stored in another way"
            b.CopyFrom(a)
        elif is_external(a):
            entries = [{e.key: e.value for e in t.external_data} for t in (a, b)]
            for each in entries:
                del each["location"]
                each.pop("checksum", None)  # of the whole file
            assert entries[0] == entries[1]
            b.CopyFrom(a)
    # Numbers that a Constant has in no tensor.
    for a, b in zip(one.graph.node, other.graph.node, strict=True):
        for mine, its in zip(a.attribute, b.attribute, strict=True):
            if a.op_type == "Constant" and mine.floats and mine != its:
                changed.add(a.output[0])
                its.floats[:] = mine.floats
    assert one == other, "more than stored tensors has changed"
    return changed


def round_trip(path, inputs, folder, tolerance=1e-4, frozen=()):
    """Load, compare, train, save, compare; return the distances, the losses and what changed."""
    net = load(path)
    before = distance(by_net(net, inputs), by_runtime(path, inputs))
    assert before < tolerance
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(parameter.requires_grad and name not in frozen)
    losses = train(net, inputs)
    new = Path(folder) / Path(path).name
    save(net, new)
    onnx.checker.check_model(str(new))
    after = distance(by_net(net, inputs), by_runtime(new, inputs))
    assert after < tolerance
    assert distance(by_net(load(new), inputs), by_net(net, inputs)) < tolerance
    return before, after, losses, changed_tensors(path, new)
