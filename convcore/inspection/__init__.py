"""Inspection of nets: `summary` lists their modules with shapes, parameters and costs.

`convcore.inspection.attribution` says which parts of an image a score comes from.
"""

from convcore.inspection import attribution
from convcore.inspection.summary import Row, Summary, summary

__all__ = ["Row", "Summary", "attribution", "summary"]
