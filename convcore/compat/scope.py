"""What of PyTorch is out of scope for convcore: why, and what to use instead."""

from __future__ import annotations

import fnmatch
import functools

# A pattern of full names, and the rest of the sentence "X is out of scope for convcore: ...".
# The first that fits counts.
_REASONS = {
    "cuda": "it computes on the CPU; use device 'cpu'",
    "sparse": "all tensors are dense; use scipy.sparse for sparse matrices",
    "quantized": "it computes in floating point; use ONNX Runtime for quantized nets",
    "distributed": "processes are MPI's; groups, collectives and DistributedDataParallel are there",
    "compiler": "kernels are compiled in advance; `convcore.optimize_for_inference` plans a net",
    "jit": "there is no second language; modules run as Python, and pickle saves them",
    "fx": "nothing traces Python code; hooks and `grad_fn` show what a net computes",
    "onnx": "`torch.onnx` needs PyTorch's tracer",
    "profiler": "use `convcore bench`, or a profiler for Python such as py-spy",
    "extension": "it does not load PyTorch's compiled extensions; compose tensor functions instead",
    "nested": "tensors are rectangular; pad sequences with `nn.utils.rnn.pad_sequence`",
    "mobile": "there is one backend",
    "fft": "use numpy.fft on `tensor.numpy()`",
    "tensorboard": "use the package tensorboardX, which takes tensors as they are",
    "dispatch": "nothing is below autograd; `overrides.TorchFunctionMode` sees each function",
    "private": "it is a private part of PyTorch",
}
_PATTERNS = (
    ("torch.cuda.*", "cuda"),
    ("torch.*.cuda.*", "cuda"),
    ("torch.Tensor.cuda", "cuda"),
    ("torch.mps*", "cuda"),
    ("torch.xpu*", "cuda"),
    ("torch.mtia*", "cuda"),
    ("torch.Tensor.*pu", "cuda"),
    ("torch.cudnn_*", "cuda"),
    ("torch.miopen_*", "cuda"),
    ("torch.*cuda*", "cuda"),
    ("torch.sparse*", "sparse"),
    ("torch.*sparse*", "sparse"),
    ("torch.*.*sparse*", "sparse"),
    ("torch.*crow_indices*", "sparse"),
    ("torch.*ccol_indices*", "sparse"),
    ("torch.*coalesce*", "sparse"),
    ("torch.*hspmm", "sparse"),
    ("torch.*sspaddmm", "sparse"),
    ("torch.smm", "sparse"),
    ("torch.*quant*", "quantized"),
    ("torch.*q_scale", "quantized"),
    ("torch.*q_zero_point", "quantized"),
    ("torch.*q_per_channel*", "quantized"),
    ("torch.*qscheme", "quantized"),
    ("torch.*int_repr", "quantized"),
    ("torch.*choose_qparams*", "quantized"),
    ("torch.*fbgemm*", "quantized"),
    ("torch.q*int*", "quantized"),
    ("torch.ao*", "quantized"),
    ("torch.nn.intrinsic*", "quantized"),
    ("torch.nn.qat*", "quantized"),
    ("torch.distributed*", "distributed"),
    ("torch.nn.parallel.*", "distributed"),
    ("torch._dynamo*", "compiler"),
    ("torch._inductor*", "compiler"),
    ("torch._export*", "compiler"),
    ("torch._functorch*", "compiler"),
    ("torch._higher_order_ops*", "compiler"),
    ("torch.compile*", "compiler"),
    ("torch.export*", "compiler"),
    ("torch.jit*", "jit"),
    ("torch.PyTorchFile*", "private"),
    ("torch.*Script*", "jit"),
    ("torch.*Type", "jit"),
    ("torch.fx*", "fx"),
    ("torch.onnx*", "onnx"),
    ("torch.profiler*", "profiler"),
    ("torch.autograd.profiler*", "profiler"),
    ("torch.monitor*", "profiler"),
    ("torch.utils.cpp_extension*", "extension"),
    ("torch.library*", "extension"),
    ("torch.ops*", "extension"),
    ("torch.classes*", "extension"),
    ("torch.nested*", "nested"),
    ("torch.*nested*", "nested"),
    ("torch.utils.mobile*", "mobile"),
    ("torch.*mkldnn*", "mobile"),
    ("torch.*vulkan*", "mobile"),
    ("torch.fft*", "fft"),
    ("torch.*stft", "fft"),
    ("torch.utils.tensorboard*", "tensorboard"),
    ("torch.utils._python_dispatch.*", "dispatch"),
    ("torch._*", "private"),
)


@functools.lru_cache(4096)
def reason(path: str) -> str:
    """Return why a name such as 'torch.cuda.Stream' is out of scope; '' for one that is not."""
    for pattern, key in _PATTERNS:
        if fnmatch.fnmatchcase(path, pattern):
            return _REASONS[key]
    return ""
