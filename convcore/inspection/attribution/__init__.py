"""Attribution: which parts of an image a net's score comes from.

Each method is a function of a model, a batch (N, ...), and the target class; the model runs in
evaluation mode, and its modes, hooks and gradients are as before afterwards.  Rules for ReLUs and
layers are applied at the nodes of the graph, so modules that are called again, functions, sums
with a shortcut and operations in place all follow them.
"""

from convcore._errors import calls as _calls
from convcore.inspection.attribution._lrp_rules import Epsilon, Gamma, ZPlus
from convcore.inspection.attribution.cam import grad_cam, grad_cam_plus_plus, layer_cam
from convcore.inspection.attribution.deep_lift import deep_lift
from convcore.inspection.attribution.gradients import input_x_gradient, saliency, smooth_grad
from convcore.inspection.attribution.guided import deconvolution, guided_backprop
from convcore.inspection.attribution.integrated_gradients import integrated_gradients
from convcore.inspection.attribution.lrp import lrp
from convcore.inspection.attribution.occlusion import occlusion

__all__ = [
    "Epsilon",
    "Gamma",
    "ZPlus",
    "deconvolution",
    "deep_lift",
    "grad_cam",
    "grad_cam_plus_plus",
    "guided_backprop",
    "input_x_gradient",
    "integrated_gradients",
    "layer_cam",
    "lrp",
    "occlusion",
    "saliency",
    "smooth_grad",
]

_calls.hint_keywords(__name__)
