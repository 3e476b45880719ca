"""Looking into nets: what their modules make of an input, and what that costs."""

from convcore.inspection.summary import Row, Summary, summary

__all__ = ["Row", "Summary", "summary"]
