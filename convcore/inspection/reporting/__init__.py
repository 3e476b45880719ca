"""Reports on nets: one HTML page that shows what a net is, does and costs.

A call of the net is seen as a tree of calls and as a flow of tensors (``_calls.py``), its values
are reduced to statistics and small pictures (``_values.py``), and what a page says is written part
by part: the graph (``_graph.py``), the table (``_table.py``), the layers (``_layers.py``).
"""

from convcore.inspection.reporting.writing import report

__all__ = ["report"]
