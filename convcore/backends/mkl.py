"""Intel's MKL: not used."""

from convcore.backends._switches import absent as is_available

__all__ = ["is_available"]
