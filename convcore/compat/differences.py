"""Names that convcore has and that differ from PyTorch's: how.

Rounding is no difference.
"""

from __future__ import annotations

_AUTOCAST = (
    "layers round float32 parameters where they are multiplied, and not their gradients; what "
    "changes inside is cast again; needs the extra [bfloat16]"
)

DIFFERENCES = {
    "torch.Tensor.cuda": "raises: convcore computes on the CPU",
    "torch.Tensor.detach_": "detaches the views that were made before too",
    "torch.Tensor.to_sparse": "raises: all tensors are dense",
    "torch.bfloat16": "needs the extra [bfloat16]",
    "torch.autocast": _AUTOCAST,
    "torch.compile": "returns the model as it is",
    "torch.export": "a module with `Dim` and `dims` only, for `torch.onnx.export`",
    "torch.polar": "the gradient is that of the formula for negative sizes too",
    "torch.vmap": "a loop over the batch",
    "torch.conj": "a copy, not a view: so are `Tensor.mH` and `Tensor.H` of complex tensors",
    "torch.floor_divide": "the gradient is zero, not an error",
    "torch.nextafter": "raises in the backward pass; PyTorch passes the gradient on",
    "torch.std": "infinite where a square is beyond the dtype",
    "torch.var": "infinite where a square is beyond the dtype",
    **{
        f"torch.{name}": "of uint8 and a number below zero: compared as they are, not modulo 256"
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
    },
    "torch.logaddexp": "of real numbers only",
    "torch.einsum": "the operands have one dtype, even where no product is summed",
    "torch.Tensor.mT": "raises for a number, of which PyTorch warns",
    "torch.nn.functional.huber_loss": "the result has the common dtype, as of other losses",
    "torch.nn.functional.binary_cross_entropy_with_logits": "the result has the common dtype, as "
    "of other losses",
    "torch.nn.functional.avg_pool2d": "of floating-point tensors only",
    "torch.nn.functional.hardtanh": "of floating-point tensors only",
    "torch.nn.functional.relu6": "of floating-point tensors only",
    "torch.nn.Parameter": "of a subclass of Tensor it is a Parameter alone",
    "torch.nn.SyncBatchNorm": "works on the CPU, where PyTorch's refuses to",
    "torch.nn.DataParallel": "calls the module itself: there is one device",
    "torch.nn.Embedding": "sparse=True raises NotImplementedError",
    "torch.nn.TransformerEncoder": "padded positions are computed in evaluation mode too",
    "torch.nn.functional.grid_sample": "a place that is NaN or infinite gives 0 with zero padding; "
    "the gradient has no gradient",
    "torch.utils.data.DataLoader": "pin_memory has no effect; workers may be threads too",
    "torch.autograd.graph.allow_mutation_on_saved_tensors": "copies every saved tensor",
    "torch.func.vmap": "a loop over the batch",
    "torch.hub.load_state_dict_from_url": "reads local files and the cache; downloads nothing",
    "torch.hub.download_url_to_file": "raises: nothing is downloaded",
    "torch.amp.autocast": _AUTOCAST,
    "torch.pow": "a complex zero to the power of zero is 1; the second gradient of 0 ** x is 0, "
    "not NaN",
    "torch.sinc": "the gradient at infinity is 0, not NaN, and its own at 0 is -pi^2 / 3",
    "torch.amax": "a NaN gets the gradient; PyTorch's is NaN for all elements",
    "torch.amin": "a NaN gets the gradient; PyTorch's is NaN for all elements",
    "torch.scatter_reduce": "a NaN gets the gradient of amax and amin; PyTorch's is NaN for all",
    "torch.block_diag": "numbers are matrices, and promote as such",
    "torch.Tensor.is_meta": "on 'meta', sums, products of matrices and layers raise: they have no "
    "rules of shapes",
    "torch.Tensor.requires_grad_": "views that were made before stay as they are",
    **{
        f"torch.nn.functional.{name}": "the result stays channels_last; PyTorch's is contiguous, "
        "so that `view` may take it as one row an image"
        for name in ("softmax", "log_softmax")
    },
    "torch.nn.functional.kl_div": "0 log 0 has the gradient 0, not NaN",
    "torch.nn.functional.hardswish": "the gradient at NaN is NaN always, not 1 at times",
    **{
        f"torch.nn.functional.{name}": "the gradient at NaN is NaN, not that of positive numbers"
        for name in ("elu", "celu", "selu")
    },
    "torch.nn.functional.scaled_dot_product_attention": "of no queries the batches broadcast as "
    "they do of some",
    "torch.linalg.svd": "of a matrix of deficient rank, the vectors may have other signs",
}
