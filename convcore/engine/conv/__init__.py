"""Convolutions on arrays: their passes, plans and algorithms.

- passes.py: forward, input gradient, weight gradient, bias gradient, transposed convolution
- call.py: `ConvCall`, all that a plan depends on; plans are made once and cached
- prepacked.py: a forward pass whose weights are packed once, for inference
- engine/geometry.py: sizes, strides, dilations, pads and groups, checked
- plan.py: which algorithm each pass takes, with how much memory, and why
- algorithms/: one file an algorithm, and the choice among them
- struct_fields.py: from geometry to the fields of the kernels' structs
- stride_phases.py: the stride decomposition of an input gradient
- epilogue.py: activations that kernels apply while outputs are in cache
- patches.py, shaping.py: im2col and col2im; pad, dilate and rotate by hand

The weight gradient of conv2d, from backward to the inner loop:

1. functions/conv.py (nn/functional calls it): `_forward_backward` calls `_weight_grad`
2. engine/conv/passes.py: `conv_weight_grad`
3. engine/conv/call.py: `run` looks for the plan; `_weight_gradient` asks algorithms/ for one
4. engine/conv/algorithms/gemm_weight_gradient.py, if im2col is chosen: the kernel's job
5. kernels/conv/_kernel.pyx `run`, then _im2col_gemm_weight.pyx: threads, blocks, partial sums;
   _im2col.pyx gathers a block's patches
6. kernels/runtime/_gemm.pyx: the product of a block
"""
