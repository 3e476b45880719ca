"""PyTorch's compiled operators: torchvision's that are here, and what is said of the others."""

import pytest

import convcore
from convcore.compat.torch import ops
from convcore.compat.torch.ops import torchvision as operators

BOXES = convcore.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]])
SCORES = convcore.tensor([0.5, 0.9, 0.1])


def test_libraries_are_refused_but_for_torchvisions():
    for name in ("_C", "_C_stable", "image_stable"):
        ops.load_library(f"/somewhere/torchvision/{name}.so")
    ops.load_library("/somewhere/torchvision/image.cpython-311-x86_64-linux-gnu.so")
    for path in ("/somewhere/mine/_C.so", "/somewhere/torchvision/_other.so"):
        with pytest.raises(OSError, match="load_library is out of scope for convcore"):
            ops.load_library(path)


def test_the_best_boxes_are_found():
    found = operators.nms.default(BOXES, SCORES, 0.5)
    assert found.tolist() == [1, 2]
    assert found.dtype is convcore.int64
    assert operators.nms(BOXES, SCORES.requires_grad_(), 0.9).tolist() == [1, 0, 2]
    assert operators.nms(BOXES[:0], SCORES[:0], 0.5).tolist() == []


@pytest.mark.parametrize(
    ("boxes", "scores", "text"),
    [
        (BOXES[0], SCORES, "boxes should be a 2d tensor, got 1D"),
        (BOXES[:, :3], SCORES, "boxes should have 4 elements in dimension 1, got 3"),
        (BOXES, BOXES, "scores should be a 1d tensor, got 2D"),
        (BOXES, SCORES[:2], "same number of elements in dimension 0, got 3 and 2"),
    ],
)
def test_boxes_and_scores_that_do_not_belong_together_are_refused(boxes, scores, text):
    with pytest.raises(RuntimeError, match=text):
        operators.nms(boxes, scores, 0.5)


def test_regions_are_pooled():
    x = convcore.arange(16.0).reshape(1, 1, 4, 4).requires_grad_()
    rois = convcore.tensor([[0.0, 0, 0, 4, 4]])
    plain = operators.roi_align(x, rois, 0.5, 2, 2, 1, False)
    assert plain.tolist() == [[[[2.5, 3.5], [6.5, 7.5]]]]
    shifted = operators.roi_align(x, rois, 0.5, 2, 2, 1, True)
    assert shifted.tolist() == [[[[0.0, 1.0], [4.0, 5.0]]]]
    shifted.sum().backward()
    assert x.grad[0, 0].tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_regions_that_do_not_fit_are_refused():
    x = convcore.ones(1, 1, 4, 4)
    with pytest.raises(RuntimeError, match=r"rois must have shape as Tensor\[K, 5\]"):
        operators.roi_align(x, BOXES, 1.0, 2, 2, 1, False)
    with pytest.raises(RuntimeError, match=r"float32 does not equal torch\.float64"):
        operators.roi_align(x, convcore.zeros(1, 5).double(), 1.0, 2, 2, 1, False)
