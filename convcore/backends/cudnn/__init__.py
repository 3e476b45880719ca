"""cuDNN's switches: there is no cuDNN, and they change nothing."""

from convcore.backends._switches import absent as is_acceptable
from convcore.backends._switches import absent as is_available
from convcore.backends._switches import flags_of
from convcore.backends._switches import no_version as version

__all__ = ["flags", "is_acceptable", "is_available", "version"]

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"
flags = flags_of(__name__)
