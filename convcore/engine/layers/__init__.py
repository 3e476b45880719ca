"""Layers on arrays, without autograd: each subject has one name on every floor.

==========================  =========================  ===========================  ==============
subject                     engine/layers/             kernels/layers/              microkernels
==========================  =========================  ===========================  ==============
activations, sums of two    elementwise.py             _elementwise.pyx             elementwise.h
batch, group, instance norm norm.py                    _norm_nchw, _norm_nhwc.pyx   norm.h
layer norm                  layer_norm.py              _layer_norm.pyx              norm.h
max pooling                 max_pooling.py, in NumPy   _max_pool.pyx                max_pool.h
                            max_pooling_numpy.py
max unpooling               max_unpooling.py
average pooling             avg_pooling.py             _separable.pyx               separable.h
global average pooling      global_avg_pooling.py      _reduce.pyx                  reduce.h
interpolation               interpolation.py           _separable.pyx               separable.h
padding                     padding.py                 _separable, _strided_copy    separable.h
concatenation               strided_copy.py            _strided_copy.pyx
softmax                     softmax.py                 _softmax.pyx                 softmax.h
negative log likelihood     nll.py                     _nll.pyx
sums over axes              reduce.py                  _reduce.pyx                  reduce.h
mean, variance, limits      moments.py                 _moments.pyx                 moments.h
gradient-norm clipping      clip_grad.py               _clip_grad.pyx               clip_grad.h
optimizers                  optimizers.py              _optimizers.pyx              optimizers.h
==========================  =========================  ===========================  ==============

Shared: pooling.py (checks), windows.py (NumPy's windows), separable.py (weights along each axis),
images.py (dense NCHW and NHWC memory), kernels/layers/pooling.h (axes of images).

To add a layer: its loops in a header of kernels/layers, included and listed in microkernels.c,
declared in microkernels.h; threads and blocks in a .pyx; checks and
memory in a module here; the differentiable function in functions/, the module in nn/modules/.
Tests compare it with engine/reference.py, with finite differences and with PyTorch.
"""
