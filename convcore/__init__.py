"""convcore: convolutions on a CPU, faster than the big frameworks, in a wheel of a few MB.

One legend of shape letters serves the whole package:

    N       batch                           K       C_in/G * KH * KW, terms of one output's sum
    C_in    input channels                  P       OH * OW, output pixels of one image
    C_out   output channels                 SH, SW  strides
    G       groups                          DH, DW  dilations
    D, H, W     input sizes                 KD, KH, KW  kernel sizes
    OD, OH, OW  output sizes
"""

from convcore import engine
from convcore.engine.threads import get_num_threads, set_num_threads

__version__ = "0.1.0"

__all__ = ["__version__", "engine", "get_num_threads", "set_num_threads"]
