"""Hints for gradients and the graph."""

from __future__ import annotations

AMBIGUOUS = (
    "use .any() or .all() for one answer; & and | instead of `and` and `or`, for one an element"
)
NOT_SCALAR = "backward starts from one number: reduce first, as in loss.mean().backward()"
COMPUTED_COPY = (
    "a tensor that was computed from others is copied by x.detach().clone(). nn.utils.weight_norm "
    "and spectral_norm keep such a weight, and so does nn.utils.prune: use "
    "nn.utils.parametrizations.weight_norm and spectral_norm, call prune.remove(layer, 'weight'), "
    "or run the net once under torch.no_grad() before the copy"
)
LEAF_IN_PLACE = (
    "change a parameter's values under torch.no_grad(), or compute a new tensor, as in w = w + 1"
)
NOT_RECORDED = "call x.requires_grad_() on it before anything is computed from it"
MODIFIED = (
    "clone the tensor before the operation changes it, or use the operation that is not in place"
)


def no_graph(inexact: bool, enabled: bool) -> str:
    """Say why a tensor, of floating point or complex if ``inexact``, is connected to no leaf."""
    if not inexact:
        return "it is not of floating point: argmax, comparisons and conversions have no gradient"
    if not enabled:
        return "gradients are not recorded here: compute and call backward outside torch.no_grad()"
    return (
        "no leaf that it was computed from requires grad (set requires_grad=True on one before), "
        "or it was computed under torch.no_grad(), by a net of optimize_for_inference, or from "
        ".detach(), .data, .item() or .numpy()"
    )
