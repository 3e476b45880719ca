"""Inference-only nets: layers fused, weights prepacked, kernels called from a plan.

`optimize_for_inference` (``optimized.py``) works in two stages.

1. Layers are fused, once. ``layer_trace.py`` runs the net with hooks on its layers and sees in the
   autograd graph which layer's output goes to which layer alone. A convolution takes in the batch
   norm after it (``batch_norm_folding.py``) and the activation after that; ``layers.py`` has the
   modules that replace them, with prepacked weights.

2. For each kind of input (shape, memory format, number of threads) a plan is made at the first
   call with it, and cached (``plan_cache.py``). A plan is a list of steps, each a kernel and its
   arguments, with the memory of all intermediate results laid out beforehand; later calls run the
   steps and none of the net's Python code. It is made as follows:

   - ``op_graph.py``: the net is run with gradients; the autograd graph, read back from the
     results, is the list of its ops, and says which op consumes which result.
   - ``simplification.py``: several ops that are one, as the five of a Hardswish written out, and
     numbers by which a convolution's input or result is multiplied, which its weights take in.
   - ``lowering.py``: a table from an op's name to the function that adds its steps; those of
     ``convolutions.py`` (with the activation, sum or max pool that is fused into a convolution),
     ``linear.py`` and ``elementwise.py``. An op without an entry there ends the attempt
     (`UnplannedError`), and the net is called layer by layer.
   - ``plan_builder.py``: the steps so far, what each op's result is, and who still needs it: an op
     may work in place if nobody else does, and an op that can be fused is deferred to its consumer.
   - ``execution_plan.py``: lifetimes of the results, where each lies in one arena, and the calls.

Hooks on layers, captures and patches see the values of the net as it was.  A convolution computes
only what comes before a value that is watched, and the layers after it the rest (``layers.py``).
For plans, one more run records the points at which values can be watched (``points.py``); a plan is
made of its ops, cut at those that are watched now (``cutting.py``).

The autograd graph does not show everything that a net does (detached tensors, Python branches,
state). So the fused net and each plan are run on inputs and compared with the net itself
(``validation.py``), and are dropped where they differ.
"""

from convcore.inference.optimized import OptimizedModule, optimize_for_inference

__all__ = ["OptimizedModule", "optimize_for_inference"]
