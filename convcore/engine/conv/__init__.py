"""Convolutions on arrays: their passes, plans and algorithms.

- conv_nd.py: conv1d to conv_transpose3d, with PyTorch's arguments
- passes.py: forward, input gradient, weight gradient, bias gradient, transposed convolution
- call.py: `ConvCall`, all that a plan depends on; plans are made once and cached
- prepacked.py: a forward pass whose weights are packed once, for inference
- engine/geometry.py: sizes, strides, dilations, pads and groups, checked
- plan.py: which algorithm each pass takes, with how much memory, and why
- algorithms.py, selection.py: the choice; problem.py: what an algorithm is asked, and answers
- a folder an algorithm, or a family of them: bfloat16/ depthwise/ few_channels/ grouped/ im2col/
  indirect/ winograd/
- blocks.py, direct.py, _kernel.pyx, packed_gemm.h, halo_tile.h, epilogue.h: what they share
- struct_fields.py: from geometry to the fields of the kernels' structs
- stride_phases.py: the stride decomposition of an input gradient
- epilogue.py: activations that kernels apply while outputs are in cache
- patches.py, shaping.py: im2col and col2im; pad, dilate and rotate by hand

The weight gradient of conv2d, from backward to the inner loop:

1. functions/conv.py (nn/functional calls it): `_forward_backward` calls `_weight_grad`
2. passes.py: `conv_weight_grad`
3. call.py: `run` looks for the plan; `_weight_gradient` has algorithms.py choose one

and then, for 3x3 layers of stride 1 in float32, in either memory format:

4. winograd/plan.py: blocks, workspace, the kernel's job
5. winograd/_winograd_weight.pyx: threads; each block of tiles is transformed and multiplied
6. packed_gemm.h `product`: the inner loop; winograd/winograd_1d.h: the transforms

for strided, dilated and many other layers in float32:

4. indirect/weight.py: the same
5. indirect/_indirect_weight.pyx: threads; pointers to the pixels under each tap
6. indirect/indirect.c `gradient_tile`: the inner loop

for float64, complex numbers, and where im2col is asked for:

4. im2col/weight.py: the same
5. im2col/_im2col_gemm_weight.pyx: threads, blocks, partial sums; _im2col.pyx gathers patches
6. runtime/_gemm.pyx: BLAS multiplies a block
"""
