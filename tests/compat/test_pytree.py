"""Nested containers as flat lists, as `torch.utils._pytree` has them."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

from convcore.compat.torch.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
TREE = {"a": [1, (2, 3)], "b": Point(4, OrderedDict(c=5)), "d": deque([6], 2), "e": None}


def test_flatten_and_unflatten():
    leaves, spec = pytree.tree_flatten(TREE)
    assert leaves == [1, 2, 3, 4, 5, 6, None]
    assert spec.num_leaves == 7 and pytree.tree_unflatten(leaves, spec) == TREE
    assert pytree.tree_map(str, TREE)["b"] == Point("4", OrderedDict(c="5"))
    assert pytree.tree_map_only(int, lambda x: -x, TREE)["a"] == [-1, (-2, -3)]
    assert pytree.tree_map(lambda a, b: a + b, [1, (2,)], [3, (4,)]) == [4, (6,)]
    with pytest.raises(ValueError, match=r"has length 1 but the spec refers to .* 7 items"):
        pytree.tree_unflatten([1], spec)


def test_agrees_with_pytorch(torch):
    from torch.utils import _pytree as theirs

    tree = {**TREE, "f": defaultdict(list, g=[7])}
    assert pytree.tree_leaves(tree) == theirs.tree_leaves(tree)
    assert pytree.tree_map(repr, tree) == theirs.tree_map(repr, tree)
    leaf = lambda x: isinstance(x, tuple)  # noqa: E731
    assert pytree.tree_leaves(tree, leaf) == theirs.tree_leaves(tree, leaf)


def test_a_registered_class_is_a_container():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda ab, _: Pair(*ab))
    doubled = pytree.tree_map(lambda x: 2 * x, Pair(1, [2]))
    assert (doubled.a, doubled.b) == (2, [4])
