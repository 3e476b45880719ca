"""report: one HTML page that shows a net's layers, costs, values and faults."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from convcore import nn
from convcore._errors import hinted
from convcore._errors.hints import input_of_sizes
from convcore._tensor import Tensor
from convcore.inspection._models import check_model
from convcore.inspection._optimized import refuse_optimized
from convcore.inspection.reporting._facts import facts_of
from convcore.inspection.reporting._page import page
from convcore.serialization.replacing import writing


def report(
    model: nn.Module,
    input: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    times: bool = False,
) -> Path:
    """Write a report on a net as one HTML page: graph, layers, costs, values, saliency, NaN.

    Parameters
    ----------
    model : Module
        Runs in evaluation mode; its modes, hooks and gradients are as before afterwards.
    input : Tensor, or tuple of all arguments
        What it is called with, such as one image (1, C, H, W).
    path : path
        Where the page is written, in one piece: an older file stays if that fails.
    title : str, optional
        The page's title. Default: the model's class.
    times : bool
        Whether to measure times and draw a flame graph. Without them the page is the same, byte for
        byte, for the same net and input.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    TypeError
        ``model`` is no Module, ``input`` holds no tensor, or ``path`` is no file's name.
    ValueError
        ``path`` has the suffix of another format.
    OSError
        The file cannot be written.
    RuntimeError
        ``model`` was made by `optimize_for_inference`: report on the net that it was made of.

    Notes
    -----
    The page loads nothing and runs no script: any browser shows it, from a disk or in a mail. It
    shows the first image's feature maps; statistics are of the whole batch, gradients those of the
    images' largest class scores, or of the sum of a result that is not (N, C). All results of one
    pass are in memory at once. A net that gives NaN or infinities gets a report too, with the call
    that made the first one.

    Examples
    --------
    >>> import convcore, os, tempfile
    >>> from convcore import inspection
    >>> net = convcore.models.lenet()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = inspection.report(net, convcore.rand(1, 1, 28, 28), f"{folder}/net.html")
    ...     page.name, os.path.getsize(page) < 2**20
    ('net.html', True)
    """
    if not isinstance(path, str | os.PathLike):
        swapped = isinstance(input, str | os.PathLike)
        raise hinted(
            TypeError(f"path must be a file's name, got {type(path).__name__}"),
            "path stands last: report(model, input, path)" if swapped else "",
        )
    check_suffix(path)
    check_model(model)
    given = input if isinstance(input, tuple) else (input,)
    if not any(isinstance(one, Tensor) for one in given):
        raise hinted(
            TypeError(f"input must be a Tensor or a tuple with one, got {type(input).__name__}"),
            input_of_sizes(given),
        )
    refuse_optimized(model, "report")
    facts = facts_of(model, given, title or model._get_name(), times)
    text = page(facts).encode("utf-8", "replace")
    with writing(path) as file:
        file.write(text)
    return Path(path)


def check_suffix(path: str | os.PathLike[str]) -> None:
    """Raise ValueError if a page's file is named as one of another format."""
    if Path(os.fspath(path)).suffix.lower() not in ("", ".html", ".htm"):
        raise ValueError(f"path must end in .html or .htm, got {os.fspath(path)!r}")
