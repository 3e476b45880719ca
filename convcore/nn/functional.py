"""The functions that layers compute (F.conv2d, F.relu ...), under PyTorch's names.

They are defined in `convcore.functions`, a family a file.
"""

from convcore._errors import names as _names
from convcore.functions.drawing.dropout import *  # noqa: F403
from convcore.functions.drawing.randomized import *  # noqa: F403
from convcore.functions.elementwise.activation import *  # noqa: F403
from convcore.functions.elementwise.elementwise import sigmoid as sigmoid
from convcore.functions.elementwise.elementwise import tanh as tanh
from convcore.functions.indexing.one_hot import *  # noqa: F403
from convcore.functions.losses.cross_entropy import *  # noqa: F403
from convcore.functions.losses.ctc_loss import *  # noqa: F403
from convcore.functions.losses.likelihood_loss import *  # noqa: F403
from convcore.functions.losses.loss import *  # noqa: F403
from convcore.functions.losses.margin_loss import *  # noqa: F403
from convcore.functions.normalization.layer_norm import *  # noqa: F403
from convcore.functions.normalization.normalization import *  # noqa: F403
from convcore.functions.normalization.rms_norm import *  # noqa: F403
from convcore.functions.normalization.softmax import *  # noqa: F403
from convcore.functions.products.matmul import linear as linear
from convcore.functions.reductions.distance import cosine_similarity as cosine_similarity
from convcore.functions.reductions.distance import normalize as normalize
from convcore.functions.reductions.distance import pairwise_distance as pairwise_distance
from convcore.functions.sequences.attention import *  # noqa: F403
from convcore.functions.sequences.embedding import *  # noqa: F403
from convcore.functions.sequences.multi_head_attention import *  # noqa: F403
from convcore.functions.windows.conv import *  # noqa: F403
from convcore.functions.windows.conv_activation import *  # noqa: F403
from convcore.functions.windows.grid_sample import *  # noqa: F403
from convcore.functions.windows.interpolation import *  # noqa: F403
from convcore.functions.windows.local_response import *  # noqa: F403
from convcore.functions.windows.max_unpooling import *  # noqa: F403
from convcore.functions.windows.padding import *  # noqa: F403
from convcore.functions.windows.patches import *  # noqa: F403
from convcore.functions.windows.pooling import *  # noqa: F403
from convcore.nn import grad as grad

__all__ = [name for name in dir() if name[0] != "_" and name not in ("TYPE_CHECKING", "grad")]

_names.explain_names(__name__)
