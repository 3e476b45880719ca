"""Pictures of what is inside a net: its graph, maps, kernels, gradients, histograms.

`graph` draws the net itself, as SVG. Each other function returns a matplotlib Figure, or draws into
the one that it is given: save it to a file, or make one with ``matplotlib.pyplot.figure()`` to have
it shown. They need the extra ``convcore[view]``.
"""

from convcore._errors import calls as _calls
from convcore.inspection.pictures.flow import gradient_flow
from convcore.inspection.pictures.graph import Graph, graph
from convcore.inspection.pictures.maps import feature_maps, kernels
from convcore.inspection.pictures.overlay import saliency_overlay
from convcore.inspection.pictures.reach import receptive_field
from convcore.inspection.pictures.steps import histograms

__all__ = [
    "Graph",
    "feature_maps",
    "gradient_flow",
    "graph",
    "histograms",
    "kernels",
    "receptive_field",
    "saliency_overlay",
]

_calls.hint_keywords(__name__)
