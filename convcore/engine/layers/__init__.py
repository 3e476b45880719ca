"""Layers on arrays, without autograd.  Each subject has the same name in all layers of the package.

===========================  =================================  ====================  =============
subject                      Python                             compiled              microkernels
===========================  =================================  ====================  =============
activations, sums of two     elementwise/elementwise            _elementwise          elementwise.h
batch, group, instance norm  norm/norm                          _norm_nchw, _nhwc     norm.h
layer norm                   norm/layer_norm                    _layer_norm           norm.h
mean, variance, limits       norm/moments                       _moments              moments.h
max pooling                  pooling/max_pooling, or            _max_pool             max_pool.h
                             max_pooling_numpy in NumPy
max unpooling                pooling/max_unpooling
average pooling              pooling/avg_pooling, long_windows  interpolation's       separable.h
global average pooling       pooling/global_avg_pooling         reduce's              reduce.h
interpolation                interpolation/interpolation        _separable            separable.h
padding                      padding                            _strided_copy         separable.h
concatenation                strided_copy                       _strided_copy
softmax                      softmax/softmax                    _softmax              softmax.h
negative log likelihood      softmax/nll                        _nll
sums over axes               reduce/reduce                      _reduce               reduce.h
gradient-norm clipping       optimizers/clip_grad               _clip_grad            clip_grad.h
optimizers                   optimizers/optimizers              _optimizers           optimizers.h
===========================  =================================  ====================  =============

Shared: pooling/pooling.py (checks), windows.py (NumPy's windows), images.py (dense NCHW and NHWC
memory), interpolation/separable.py (weights along each axis), pooling.h (axes of images).

To add a layer: put its inner loops in a header, included and listed in microkernels.c and declared
in microkernels.h; threads and blocks in a .pyx; checks and memory in a Python module, all in one
folder here; the differentiable function in functions/, the module in nn/modules/.  Tests compare it
with engine/reference.py, with finite differences and with PyTorch.
"""
