"""oneDNN's switches: there is no oneDNN, and they change nothing."""

from convcore.backends._switches import absent as is_available
from convcore.backends._switches import flags_of

__all__ = ["flags", "is_available"]

enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"
flags = flags_of(__name__)
