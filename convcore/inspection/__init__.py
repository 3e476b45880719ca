"""Inspection of nets: look inside, change what is there, and find where NaN and time come from.

`summary` lists modules with shapes, parameters and costs, `capture` keeps activations and gradients
by name, `patch` changes them, and `find_nan` names the call that made the first NaN. `profile`
measures the time and memory of each module and operation, and
`convcore.inspection.attribution` says which parts of an image a score comes from. `report` writes
all of it as one HTML page, and `convcore.inspection.pictures` draws parts of it.
"""

from convcore._errors import calls as _calls
from convcore._errors import names as _names
from convcore.inspection import attribution, pictures
from convcore.inspection.capturing import Capture, capture
from convcore.inspection.live import Watch, watch
from convcore.inspection.nonfinite import NonFiniteError, find_nan
from convcore.inspection.patching import Patch, noise, patch, scale, stop, zero
from convcore.inspection.profiling import Profile, ProfileRow, profile
from convcore.inspection.reporting import report
from convcore.inspection.summary import Row, Summary, summary

__all__ = [
    "Capture",
    "NonFiniteError",
    "Patch",
    "Profile",
    "ProfileRow",
    "Row",
    "Summary",
    "Watch",
    "attribution",
    "capture",
    "find_nan",
    "noise",
    "patch",
    "pictures",
    "profile",
    "report",
    "scale",
    "stop",
    "summary",
    "watch",
    "zero",
]

_calls.hint_keywords(__name__)

_names.explain_names(__name__)
