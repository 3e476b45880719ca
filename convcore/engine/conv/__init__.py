"""Convolutions on arrays: their passes, plans and algorithms.

- conv_nd.py: conv1d to conv_transpose3d, with PyTorch's arguments
- passes.py: forward, input gradient, weight gradient, bias gradient, transposed convolution
- call.py: `ConvCall`, everything a plan depends on; plans are computed once and cached
- prepacked.py: a forward pass whose weights are packed once, for inference
- geometry.py, one folder up: validated sizes, strides, dilations, pads and groups
- plan.py: the report of which algorithm each pass takes, with how much memory, and why
- algorithms.py, selection.py: the choice of an algorithm; problem.py: the description of a pass
  that an algorithm receives, and the plan that it returns
- one folder per algorithm or family: bfloat16/ depthwise/ few_channels/ grouped/ im2col/ indirect/
  winograd/; code shared by them: blocks.py, direct.py, _kernel.pyx, packed_gemm.h, halo_tile.h,
  epilogue.h; microkernels.c: tables of inner loops, one of which runtime/_isa.pyx picks at import
- struct_fields.py: computes the fields of the kernels' structs from a geometry
- stride_phases.py: the stride decomposition of an input gradient
- epilogue.py: activations that kernels apply while outputs are in cache
- patches.py, shaping.py: public im2col and col2im; zero_pad, dilate and rotate180

The weight gradient of conv2d, from backward to the inner loop:

1. functions/windows/conv.py: `_forward_backward` calls `_weight_grad`
2. passes.py: `conv_weight_grad`
3. call.py: `run` looks up the plan; `_weight_gradient` asks algorithms.py to choose an algorithm

then, for most 3x3 and 5x5 layers in float32 with at least 16 channels per group:

4. winograd/plan.py: blocks, workspace, the kernel's job
5. _kernel.pyx `FloatWeightGradient`: threads; winograd/_winograd_weight.pyx: one block of tiles
6. winograd/winograd_2d.h: tiles to transformed points, per memory format; packed_gemm.h
   `product_rows`: the inner loop

for most other layers in float32 (`convcore plan` prints the choice and the reason):

4. indirect/weight.py: blocks, workspace, the kernel's job
5. _kernel.pyx: threads; indirect/_indirect_weight.pyx: one block; _indirection.pyx: pointers to
   the pixels under each tap
6. indirect/indirect.c `gradient_tile`: the inner loop

for float64, complex numbers, and where im2col is selected:

4. im2col/weight.py: blocks, workspace, the kernel's job
5. im2col/_im2col_gemm_weight.pyx: threads, blocks, partial sums; _im2col.pyx gathers patches
6. engine/runtime/_gemm.pyx: BLAS multiplies a block

The forward pass and the input gradient go the same way: passes.py `conv_forward`, call.py, and
winograd/plan.py with _winograd.pyx, indirect/correlation.py with _indirect.pyx, or im2col/gemm.py
with _im2col_gemm.pyx.
"""
