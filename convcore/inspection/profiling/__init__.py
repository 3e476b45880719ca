"""Profiles of nets: time, memory, multiply-adds and algorithm of each module and operation.

While a profile runs, a module's ``forward`` is measured by a wrapper, an operation of the forward
pass when the graph records it, and one of the backward pass when its node runs
(``_recorder.py``). What was seen is summed into a tree afterwards (``_tree.py``, ``_costs.py``),
which prints as a table (``_table.py``) and exports as a trace (``_chrome_trace.py``).
"""

from convcore.inspection.profiling._tree import ProfileRow
from convcore.inspection.profiling.profile import Profile, profile

__all__ = ["Profile", "ProfileRow", "profile"]
