"""What scripts ask of CUDA and of other backends on any machine, before they compute on the CPU."""

import pytest

import convcore
from convcore import backends, cuda


@pytest.fixture(autouse=True)
def default_precisions():
    """Start and end with the precisions of a new process, whatever tests before this one set."""
    backends.mkldnn.conv.fp32_precision = backends.mkldnn.matmul.fp32_precision = "none"
    yield
    backends.mkldnn.conv.fp32_precision = backends.mkldnn.matmul.fp32_precision = "none"


def test_there_is_no_cuda_and_seeding_it_does_nothing():
    assert not cuda.is_available() and cuda.device_count() == 0 and not cuda.is_initialized()
    convcore.manual_seed(1)
    cuda.manual_seed(2)
    cuda.manual_seed_all(3)
    cuda.empty_cache()
    after = convcore.rand(1).item()
    assert after == convcore.rand(1, generator=convcore.Generator().manual_seed(1)).item()
    assert cuda.memory_allocated() == cuda.max_memory_allocated() == 0


@pytest.mark.parametrize(
    "ask", [cuda.synchronize, cuda.current_device, cuda.get_device_name, cuda.init]
)
def test_what_needs_a_device_says_that_there_is_none(ask):
    with pytest.raises(RuntimeError, match="computes on the CPU"):
        ask()


def test_cuda_has_only_names_of_pytorch(torch):
    assert not [name for name in cuda.__all__ if not hasattr(torch.cuda, name)]
    own = {"conv"}
    assert [n for n in backends.__all__ if not hasattr(torch.backends, n)] == sorted(own)


def test_switches_can_be_set_and_read():
    assert not backends.cudnn.is_available() and not backends.mps.is_available()
    assert backends.cudnn.enabled and not backends.cudnn.benchmark
    for name in ("benchmark", "deterministic", "enabled"):
        before = getattr(backends.cudnn, name)
        setattr(backends.cudnn, name, not before)
        assert getattr(backends.cudnn, name) is not before
        setattr(backends.cudnn, name, before)
    assert backends.cuda.matmul.allow_tf32 is False
    assert convcore.backends.mps.__name__ == "convcore.backends.mps"


def test_a_script_chooses_its_device():
    device = convcore.device("cuda" if convcore.cuda.is_available() else "cpu")
    assert convcore.nn.Linear(1, 1).to(device).weight.device == device


def test_precisions_of_float32_products_are_pytorchs_switches():
    mkldnn = backends.mkldnn
    try:
        for switch in (mkldnn.conv, mkldnn.matmul):
            assert switch.fp32_precision == "none"
            for precision in ("bf16", "ieee", "tf32"):
                switch.fp32_precision = precision
                assert switch.fp32_precision == precision
            with pytest.raises(ValueError, match="fp32_precision must be one of 'none', 'ieee'"):
                switch.fp32_precision = "fp16"
            switch.fp32_precision = "bf16"
        assert backends.conv.fp32_precision == "bf16"
    finally:
        mkldnn.conv.fp32_precision = mkldnn.matmul.fp32_precision = "none"


@pytest.mark.parametrize("library", ["convcore", "PyTorch"])
def test_medium_precision_of_matrix_products_is_bfloat16(library, request):
    torch = convcore if library == "convcore" else request.getfixturevalue("torch")
    mkldnn = torch.backends.mkldnn
    assert torch.get_float32_matmul_precision() == "highest"
    names = (("medium", "bf16"), ("high", "tf32"), ("medium", "bf16"), ("highest", "ieee"))
    for name, precision in names:
        torch.set_float32_matmul_precision(name)
        assert torch.get_float32_matmul_precision() == name
        assert mkldnn.matmul.fp32_precision == precision
    assert mkldnn.conv.fp32_precision == "none"
    mkldnn.matmul.fp32_precision = "none"


def test_precision_of_matrix_products_ends_with_a_context():
    before = convcore.get_float32_matmul_precision()
    with backends.conv.flags():
        convcore.set_float32_matmul_precision("high")
        assert convcore.get_float32_matmul_precision() == "high"
    assert convcore.get_float32_matmul_precision() == before


def test_no_precision_of_matrix_products_is_an_error_that_lists_them():
    with pytest.raises(RuntimeError, match="low is not one of 'highest', 'high', and 'medium'"):
        convcore.set_float32_matmul_precision("low")
    assert convcore.get_float32_matmul_precision() == "highest"


def test_switches_that_are_not_there_are_refused():
    with pytest.raises(AttributeError, match="no switch 'strickt'") as error:
        backends.conv.strickt = True
    assert str(error.value).endswith("\nHint: did you mean 'strict'?")
