"""Apple's graphics processor: not used."""

from convcore.backends._switches import absent as is_available
from convcore.backends._switches import absent as is_built

__all__ = ["is_available", "is_built"]
