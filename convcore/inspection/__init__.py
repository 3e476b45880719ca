"""Inspection of nets: `summary` lists their modules with shapes, parameters and costs."""

from convcore.inspection.summary import Row, Summary, summary

__all__ = ["Row", "Summary", "summary"]
