"""Modules of torch.distributions with names that only PyTorch's programs ask for."""

from typing import Any

from convcore._errors import missing
from convcore.distributions import Distribution


class LKJCholesky(Distribution):
    """The base class of gpytorch's priors of correlations, which cannot be used."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raise NotUsableError."""
        raise missing.not_usable("torch.distributions.LKJCholesky")
