"""autocast: contexts within contexts, threads, casts of weights, and what is left afterwards."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings

import pytest

import convcore
from convcore import amp
from convcore.autograd import casting
from convcore.nn import functional as F
from convcore.utils.checkpoint import checkpoint

pytest.importorskip("ml_dtypes")


@pytest.fixture(autouse=True)
def leaves_nothing():
    own = F.conv2d.__code__
    yield
    assert casting.exchange.holders() == 0
    assert not casting.here.enabled and casting.here.cache is None and casting.here.nesting == 0
    assert F.conv2d.__code__ is own


def product(lib) -> str:
    return str(lib.mm(lib.ones(2, 2), lib.ones(2, 2)).dtype)


def test_contexts_nest_and_are_put_back(lib):
    autocast, off = lib.amp.autocast, lib.amp.autocast("cpu", enabled=False)
    found = [product(lib)]
    with autocast("cpu") as context:
        found.append(product(lib))
        with off:
            found.append(product(lib))
            with autocast("cpu", dtype=lib.float16):
                found.append(product(lib))
        with context if lib is convcore else autocast("cpu"):  # again within itself
            found.append(product(lib))
        found.append(product(lib))
    found.append(product(lib))
    names = ["float32", "bfloat16", "float32", "float16", "bfloat16", "bfloat16", "float32"]
    assert found == [f"torch.{name}" for name in names]


def test_what_is_asked_about_it(lib):
    mode = lib.amp.autocast_mode if lib is convcore else lib
    assert not mode.is_autocast_enabled("cpu") and not mode.is_autocast_enabled()
    assert mode.get_autocast_dtype("cpu") is lib.bfloat16
    assert mode.get_autocast_dtype("cuda") is lib.float16
    with lib.autocast("cpu", dtype=lib.float16, cache_enabled=False):
        assert mode.is_autocast_enabled("cpu") and not mode.is_autocast_enabled()
        assert mode.get_autocast_dtype("cpu") is lib.float16
        assert not mode.is_autocast_cache_enabled()
    with lib.autocast("cpu", dtype=lib.float16, enabled=False):
        assert not mode.is_autocast_enabled("cpu")
        assert mode.get_autocast_dtype("cpu") is lib.float16
    assert mode.is_autocast_cache_enabled()
    assert [mode.autocast_increment_nesting(), mode.autocast_decrement_nesting()] == [1, 0]
    assert lib.amp.is_autocast_available("cpu")


def test_functions_are_decorated(lib):
    @lib.autocast("cpu")
    def inner(depth: int) -> list:
        """Multiply."""
        return [product(lib)] + (inner(depth - 1) if depth else [])

    depth = 2 if lib is convcore else 0  # PyTorch's stays on after a recursive call
    assert inner(depth) == ["torch.bfloat16"] * (depth + 1) and product(lib) == "torch.float32"
    assert inner.__name__ == "inner" and inner.__doc__ == "Multiply."


def test_errors_leave_the_context(lib):
    with pytest.raises(RuntimeError, match="must be a matrix"), lib.autocast("cpu"):
        lib.mm(lib.ones(2), lib.ones(2, 2))
    assert product(lib) == "torch.float32"


def test_unsupported_dtypes_and_devices_disable_it(lib):
    with pytest.warns(UserWarning, match="only supports dtypes of torch.bfloat16, torch.float16"):
        context = lib.autocast("cpu", dtype=lib.float64)
    with context:
        assert product(lib) == "torch.float32"
    with pytest.warns(UserWarning, match="CUDA is not available"):
        context = lib.autocast("cuda")
    with context, lib.autocast("cpu"), context:
        assert product(lib) == "torch.bfloat16"
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got: `<class"):
        lib.autocast(3)
    with pytest.raises(RuntimeError, match="at start of device string: xyz"):
        lib.autocast("xyz")


def test_each_thread_has_its_own_state(lib):
    found = []

    def work() -> None:
        found.append(product(lib))
        with lib.autocast("cpu", dtype=lib.float16):
            found.append(product(lib))
            ready.set()
            ended.wait()
        found.append(product(lib))

    ready, ended = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    with lib.autocast("cpu"):
        thread.start()
        ready.wait()
        found.append(product(lib))
    assert product(lib) == "torch.float32"  # while the other thread is inside
    ended.set()
    thread.join()
    names = ["float32", "float16", "bfloat16", "float32"]
    assert found == [f"torch.{name}" for name in names]


def casts_before(out) -> set:
    """Return the nodes of casts that a result was made with."""
    found, seen = [out.grad_fn], set()
    while found:
        node = found.pop()
        if node is not None and node not in seen:
            seen.add(node)
            found += [other for other, _ in node.next_functions]
    return {node for node in seen if node.name() == "ToCopyBackward0"}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_are_cast_once_and_their_gradients_are_float32(lib, dtype):
    weight, bias = lib.ones(3, 3, requires_grad=True), lib.ones(3, requires_grad=True)
    x = lib.ones(2, 3)

    def layer(x):
        return lib.addmm(bias, x, weight)

    with lib.autocast("cpu", dtype=getattr(lib, dtype)):
        out = layer(layer(x))
        assert len(casts_before(out)) == 2  # weight and bias, each for both uses
        with lib.autocast("cpu", dtype=getattr(lib, dtype)):
            inner = layer(x)
        assert casts_before(inner) <= casts_before(out)
        mode = lib.amp.autocast_mode if lib is convcore else lib
        mode.clear_autocast_cache()
        assert not casts_before(layer(x)) & casts_before(out)
    with lib.autocast("cpu", dtype=getattr(lib, dtype), cache_enabled=False):
        assert len(casts_before(layer(layer(x)))) == 4
    out.float().sum().backward()
    assert weight.dtype is weight.grad.dtype is bias.grad.dtype is lib.float32


LAYERS = {
    "conv2d": (lambda nn: nn.Conv2d(6, 8, 3, padding=1), (2, 6, 7, 5)),
    "conv2d, channels_last": (lambda nn: nn.Conv2d(48, 32, 1), (2, 48, 7, 5)),
    "conv2d, grouped": (lambda nn: nn.Conv2d(32, 32, 3, groups=32, bias=False), (2, 32, 7, 5)),
    "conv1d": (lambda nn: nn.Conv1d(6, 8, 3, stride=2), (2, 6, 17)),
    "conv3d, unbatched": (lambda nn: nn.Conv3d(3, 4, 2), (3, 4, 5, 6)),
    "transposed": (lambda nn: nn.ConvTranspose2d(6, 8, 3, stride=2), (2, 6, 7, 5)),
    "linear": (lambda nn: nn.Linear(70, 33), (40, 70)),
    "linear of three axes": (lambda nn: nn.Linear(70, 33, bias=False), (2, 40, 70)),
    "linear of a vector": (lambda nn: nn.Linear(70, 33), (70,)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_leave_parameters_in_float32(name):
    make, shape = LAYERS[name]
    convcore.manual_seed(0)
    layer, x = make(convcore.nn), convcore.randn(shape).requires_grad_()
    if "channels_last" in name:
        x = x.detach().to(memory_format=convcore.channels_last).requires_grad_()
    with convcore.autocast("cpu", dtype=convcore.bfloat16):
        out = layer(x)
    assert out.dtype is convcore.bfloat16
    assert len(casts_before(out)) == 1, "of the input alone"
    slopes = convcore.randn(out.shape).bfloat16().requires_grad_()
    found = convcore.autograd.grad(out, [x, *layer.parameters()], slopes, create_graph=True)
    # Beside float64, of the values that are multiplied.
    exact = make(convcore.nn).double()
    exact.load_state_dict({
        name: value.bfloat16().double() if value.dim() > 1 else value.double()
        for name, value in layer.state_dict().items()
    })  # fmt: skip
    wide = x.detach().bfloat16().double().requires_grad_()
    wanted = exact(wide)
    grads = convcore.autograd.grad(wanted, [wide, *exact.parameters()], slopes.detach().double())
    for one, right in zip((out, *found), (wanted, *grads), strict=True):
        error = (one.double() - right).abs().max() / right.abs().max()
        assert error < 2**-8, f"{float(error) * 256} units of bfloat16"
    for one, parameter in zip(found, [x, *layer.parameters()], strict=True):
        assert one.dtype is parameter.dtype
    # And again, through the gradients.
    again = convcore.autograd.grad(found[1].pow(2).sum(), x, retain_graph=True)[0]
    assert again.dtype is convcore.float32 and bool(again.isfinite().all())
    by_slopes = convcore.autograd.grad([one.sum() for one in found], slopes)[0]
    assert by_slopes.dtype is convcore.bfloat16 and bool(by_slopes.isfinite().all())


@pytest.mark.parametrize("name", ["conv2d", "transposed", "linear"])
def test_parameters_of_another_dtype_are_refused_without_autocast(lib, name):
    make, shape = LAYERS[name]
    with pytest.raises(RuntimeError, match="type"):
        make(lib.nn)(lib.ones(shape).bfloat16())


def test_a_cast_without_grad_is_not_used_with_it(lib):
    layer = lib.nn.Linear(3, 3)
    x = lib.ones(2, 3)
    with lib.autocast("cpu"):
        with lib.no_grad():
            assert not layer(x).requires_grad
        with lib.inference_mode():
            layer(x)
        layer(x).sum().backward()
    assert layer.weight.grad.dtype is lib.float32


def test_a_weight_that_changes_is_cast_again():
    layer = convcore.nn.Linear(3, 3, bias=False)
    with convcore.autocast("cpu"):
        layer(convcore.ones(1, 3))
        with convcore.no_grad():
            layer.weight.fill_(2.0)
        assert layer(convcore.ones(1, 3)).tolist() == [[6.0] * 3]


def test_calls_with_out_and_float64_are_left_alone(lib):
    out = lib.zeros(2, 2)
    with lib.autocast("cpu"):
        assert lib.mm(lib.ones(2, 2), lib.ones(2, 2), out=out) is out
        assert lib.mm(lib.ones(2, 2).double(), lib.ones(2, 2).double()).dtype is lib.float64
        assert lib.mm(lib.ones(2, 2).long(), lib.ones(2, 2).long()).dtype is lib.int64
        with pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
            lib.cat([lib.ones(2).half(), lib.ones(2).half()])
    assert out.dtype is lib.float32


def test_errors_name_the_function_and_its_arguments():
    texts = []
    for context in (convcore.no_grad(), convcore.autocast("cpu")):
        for call in (lambda: F.conv2d(1), lambda: F.linear(1, 2), lambda: convcore.mm()):
            with context, pytest.raises(TypeError) as error:
                call()
            texts.append(str(error.value))
    assert texts[:3] == texts[3:]


def test_functions_bound_before_are_cast_too():
    cross_entropy, method = F.cross_entropy, convcore.Tensor.matmul
    with convcore.autocast("cpu"):
        assert cross_entropy(convcore.ones(1, 2).bfloat16(), convcore.tensor([1])).dtype is (
            convcore.float32
        )
        assert method(convcore.ones(2, 2), convcore.ones(2, 2)).dtype is convcore.bfloat16


def test_modes_see_the_call_as_it_was_made():
    seen = []

    class Mode(convcore.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            if getattr(func, "__name__", "") == "mm":
                seen.append((args[0].dtype, result.dtype))
            return result

    try:
        with convcore.autocast("cpu"), Mode():
            convcore.mm(convcore.ones(2, 2), convcore.ones(2, 2))
    finally:
        convcore.overrides.uninstall()
    assert seen == [(convcore.float32, convcore.bfloat16)]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_are_recomputed_as_they_were_computed(lib, reentrant):
    again = checkpoint if lib is convcore else lib.utils.checkpoint.checkpoint
    seen = []
    layer = lib.nn.Linear(3, 3)

    def part(x):
        out = layer(x)
        seen.append(str(out.dtype))
        return out.sin()

    with lib.autocast("cpu"):
        out = again(part, lib.ones(2, 3, requires_grad=True), use_reentrant=reentrant)
    out.sum().backward()
    assert seen == ["torch.bfloat16"] * 2 and layer.weight.grad.dtype is lib.float32


def test_functions_of_ones_own(lib):
    seen = []

    class Product(lib.autograd.Function):
        @staticmethod
        @lib.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a.mm(b)

        @staticmethod
        @lib.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            seen.append(product(lib))
            return grad.mm(b.t()), a.t().mm(grad)

    class Exact(lib.autograd.Function):
        @staticmethod
        @lib.amp.custom_fwd(device_type="cpu", cast_inputs=lib.float32)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a.mm(b)

        @staticmethod
        @lib.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            seen.append(product(lib))
            return grad.mm(b.t()), a.t().mm(grad)

    a, b = lib.ones(2, 2, requires_grad=True), lib.ones(2, 2, requires_grad=True)
    with lib.autocast("cpu"):
        lower, exact = Product.apply(a, b), Exact.apply(a.bfloat16(), b)
    assert (lower.dtype, exact.dtype) == (lib.bfloat16, lib.float32)
    lower.sum().backward()
    exact.sum().backward()
    assert seen == ["torch.bfloat16", "torch.float32"]
    assert a.grad.dtype is b.grad.dtype is lib.float32 and a.grad.tolist() == [[4.0] * 2] * 2
    with pytest.raises(TypeError, match="device_type"):
        lib.amp.custom_fwd(lambda ctx: None)
    with pytest.raises(ValueError, match="Expected `device_type`"):
        lib.amp.custom_bwd(lambda ctx: None, device_type=1)


def test_it_is_switched_without_a_context(lib):
    mode = lib.amp.autocast_mode if lib is convcore else lib
    mode.set_autocast_enabled("cpu", True)
    mode.set_autocast_dtype("cpu", lib.float16)
    try:
        assert product(lib) == "torch.float16"
    finally:
        mode.set_autocast_enabled("cpu", False)
        mode.set_autocast_dtype("cpu", lib.bfloat16)
        mode.clear_autocast_cache()
    assert product(lib) == "torch.float32"


def test_a_context_that_cannot_be_entered_changes_nothing(monkeypatch):
    class Full:
        def hold(self, token):
            raise MemoryError

        def give_back(self, token):
            assert isinstance(token, object)

    context = amp.autocast("cpu")
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(casting, "exchange", Full())
        context.__enter__()
    assert product(convcore) == "torch.float32"


def test_older_names(lib):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with lib.cpu.amp.autocast() if lib is not convcore else lib.autocast("cpu"):
            assert product(lib) == "torch.bfloat16"


@pytest.mark.parametrize("name", ["is_autocast_enabled", "get_autocast_dtype"])
def test_a_device_is_asked_about_by_its_name(lib, name):
    ask = getattr(lib, name)
    for wrong in (None, 1, {}):
        with pytest.raises(TypeError, match=r"argument 'device_type' .* must be str"):
            ask(wrong)
    with pytest.raises(RuntimeError):
        ask("nowhere")


@pytest.mark.parametrize("bias", [False, True])
def test_the_product_of_a_linear_layer_is_that_of_the_transposed_weight(bias, lib):
    layer = lib.nn.Linear(4, 3, bias=bias)
    with lib.autocast("cpu", dtype=lib.bfloat16):
        node = layer(lib.ones(2, 4)).grad_fn
    steps = [None if step is None else step.name() for step, _ in node.next_functions]
    assert steps[-2:] == [None, "TBackward0"]
    assert len(steps) == 2 + bias


def test_the_older_names_are_there_without_the_name_torch():
    from convcore.cuda.amp import GradScaler, autocast

    assert convcore.cuda.amp.autocast is autocast
    net = convcore.nn.Linear(2, 2)
    with pytest.warns(UserWarning, match="CUDA is not available"), autocast():
        assert net(convcore.ones(1, 2)).dtype == convcore.float32
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not GradScaler().is_enabled()


@pytest.mark.subprocess
@pytest.mark.parametrize("outer", ['"cpu", enabled=False', '"cuda"'])
def test_the_first_context_of_a_process_may_be_a_disabled_one(outer):
    program = f"""
import convcore
layer, x = convcore.nn.Linear(2, 2), convcore.ones(1, 2)
with convcore.autocast({outer}):
    before = layer(x).dtype
    with convcore.autocast("cpu"):
        print(before, layer(x).dtype)
print(layer(x).dtype)
"""
    command = [sys.executable, "-P", "-W", "ignore", "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert ran.stdout.split() == ["torch.float32", "torch.bfloat16", "torch.float32"]
