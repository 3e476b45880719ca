"""Inspection of nets: `summary` lists their modules with shapes, parameters and costs.

`profile` measures the time and memory of each module and operation, and
`convcore.inspection.attribution` says which parts of an image a score comes from.
"""

from convcore.inspection import attribution
from convcore.inspection.profiling import Profile, ProfileRow, profile
from convcore.inspection.summary import Row, Summary, summary

__all__ = ["Profile", "ProfileRow", "Row", "Summary", "attribution", "profile", "summary"]
