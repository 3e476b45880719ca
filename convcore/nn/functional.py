"""The functions that layers compute (F.conv2d, F.relu ...), under PyTorch's names.

They are defined in `convcore.functions`, a family a file.
"""

from convcore._errors import names as _names
from convcore.functions.activation import *  # noqa: F403
from convcore.functions.attention import *  # noqa: F403
from convcore.functions.conv import *  # noqa: F403
from convcore.functions.conv_activation import *  # noqa: F403
from convcore.functions.cross_entropy import *  # noqa: F403
from convcore.functions.ctc_loss import *  # noqa: F403
from convcore.functions.distance import cosine_similarity as cosine_similarity
from convcore.functions.distance import normalize as normalize
from convcore.functions.distance import pairwise_distance as pairwise_distance
from convcore.functions.dropout import *  # noqa: F403
from convcore.functions.elementwise import sigmoid as sigmoid
from convcore.functions.elementwise import tanh as tanh
from convcore.functions.embedding import *  # noqa: F403
from convcore.functions.grid_sample import *  # noqa: F403
from convcore.functions.interpolation import *  # noqa: F403
from convcore.functions.layer_norm import *  # noqa: F403
from convcore.functions.likelihood_loss import *  # noqa: F403
from convcore.functions.local_response import *  # noqa: F403
from convcore.functions.loss import *  # noqa: F403
from convcore.functions.margin_loss import *  # noqa: F403
from convcore.functions.matmul import linear as linear
from convcore.functions.max_unpooling import *  # noqa: F403
from convcore.functions.multi_head_attention import *  # noqa: F403
from convcore.functions.normalization import *  # noqa: F403
from convcore.functions.one_hot import *  # noqa: F403
from convcore.functions.padding import *  # noqa: F403
from convcore.functions.patches import *  # noqa: F403
from convcore.functions.pooling import *  # noqa: F403
from convcore.functions.randomized import *  # noqa: F403
from convcore.functions.rms_norm import *  # noqa: F403
from convcore.functions.softmax import *  # noqa: F403
from convcore.nn import grad as grad

__all__ = [name for name in dir() if name[0] != "_" and name not in ("TYPE_CHECKING", "grad")]

_names.explain_names(__name__)
