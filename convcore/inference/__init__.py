"""Nets that only run: layers fused, weights kept as their kernels read them, memory laid out.

optimized.py is what users meet.  It fuses modules first: trace.py sees what follows what, fold.py
and layers.py are what takes their place.  Then planned.py has a plan made for each kind of input:
operations.py reads what the net did from the graph of gradients, planner.py turns that into steps
with what convolutions.py, linear.py and pointwise.py make of theirs, building.py counts who still
needs what, plan.py lays out the memory and runs the steps.  agreement.py tries both, as the graph
does not show all that a net does: what comes out different is not used.
"""

from convcore.inference.optimized import OptimizedModule, optimize_for_inference

__all__ = ["OptimizedModule", "optimize_for_inference"]
