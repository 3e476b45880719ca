"""Nested containers as flat lists of what is in them, and back."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

Context = Any
PyTree = Any
_namedtuple = namedtuple


class _Kind(NamedTuple):
    """How a kind of container is taken apart and put together."""

    flatten_fn: Callable[[Any], tuple[list, Any]]
    unflatten_fn: Callable[[Iterable, Any], Any]


_kinds: dict[type, _Kind] = {}
SUPPORTED_NODES = _kinds


def register_pytree_node(
    cls: type, flatten_fn: Callable, unflatten_fn: Callable, **options: Any
) -> None:
    """Make a class a container: ``flatten_fn(x)`` gives its items, and what else it has."""
    _kinds[cls] = _Kind(flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node
register_pytree_node(list, lambda x: (list(x), None), lambda items, _: list(items))
register_pytree_node(tuple, lambda x: (list(x), None), lambda items, _: tuple(items))
for _dict in (dict, OrderedDict):
    register_pytree_node(
        _dict,
        lambda x: (list(x.values()), list(x)),
        lambda items, keys, made=_dict: made(zip(keys, items, strict=True)),
    )
register_pytree_node(
    defaultdict,
    lambda x: (list(x.values()), (x.default_factory, list(x))),
    lambda items, context: defaultdict(context[0], zip(context[1], items, strict=True)),
)
register_pytree_node(
    deque, lambda x: (list(x), x.maxlen), lambda items, length: deque(items, length)
)


def _kind_of(tree: Any) -> type | None:
    """Return the container's class among those that are registered, or None for a leaf."""
    if type(tree) in _kinds:
        return type(tree)
    return _namedtuple if _is_namedtuple(tree) else None  # type: ignore[return-value]


def _get_node_type(tree: Any) -> Any:
    """Return the class of a container, or of a leaf."""
    return _kind_of(tree) or type(tree)


def _is_namedtuple(tree: Any) -> bool:
    return isinstance(tree, tuple) and type(tree).__bases__ == (tuple,) and hasattr(tree, "_fields")


register_pytree_node(
    _namedtuple,  # type: ignore[arg-type]
    lambda x: (list(x), type(x)),
    lambda items, kind: kind(*items),
)


class TreeSpec:
    """The containers of a tree, without what is in them."""

    def __init__(self, type: Any, context: Any = None, children_specs: Iterable = ()):
        self.type, self.context = type, context
        self.children_specs = list(children_specs)
        self.num_leaves = 1 if type is None else sum(c.num_leaves for c in self.children_specs)

    def is_leaf(self) -> bool:
        """Return whether there is no container."""
        return self.type is None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and (self.type, self.context) == (other.type, other.context)
            and self.children_specs == other.children_specs
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves))

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"


class LeafSpec(TreeSpec):
    """The spec of a tree without containers."""

    def __init__(self) -> None:
        super().__init__(None)


def tree_flatten(tree: Any, is_leaf: Callable | None = None) -> tuple[list, TreeSpec]:
    """Return what is in a tree, in order, and the spec by which `tree_unflatten` restores it."""
    kind = None if is_leaf is not None and is_leaf(tree) else _kind_of(tree)
    if kind is None:
        return [tree], LeafSpec()
    items, context = _kinds[kind].flatten_fn(tree)
    leaves: list = []
    specs = []
    for item in items:
        inner, spec = tree_flatten(item, is_leaf)
        leaves += inner
        specs.append(spec)
    return leaves, TreeSpec(kind, context, specs)


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> Any:
    """Return the tree of a spec, with other leaves in it.

    Raises
    ------
    ValueError
        There are not as many leaves as places.
    """
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec "
            f"refers to a pytree that holds {treespec.num_leaves} items ({treespec})."
        )
    return _restored(iter(leaves), treespec)


def _restored(leaves: Any, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    children = [_restored(leaves, child) for child in spec.children_specs]
    return _kinds[spec.type].unflatten_fn(children, spec.context)


def tree_leaves(tree: Any, is_leaf: Callable | None = None) -> list:
    """Return what is in a tree, in order."""
    return tree_flatten(tree, is_leaf)[0]


tree_iter = tree_leaves


def tree_structure(tree: Any, is_leaf: Callable | None = None) -> TreeSpec:
    """Return a tree's spec."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable, tree: Any, *rests: Any, is_leaf: Callable | None = None) -> Any:
    """Return the tree of what a function makes of each leaf, and of those of more trees."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_leaves(rest, is_leaf) for rest in rests]
    return tree_unflatten(map(func, leaves, *others), spec)


def tree_map_(func: Callable, tree: Any, *rests: Any, is_leaf: Callable | None = None) -> Any:
    """Call a function with each leaf, and return the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(kind: Any, func: Callable, tree: Any, is_leaf: Callable | None = None) -> Any:
    """Return the tree of what a function makes of the leaves of a type; others stay."""
    fits = kind if callable(kind) and not isinstance(kind, type) else None
    return tree_map(
        lambda x: func(x) if (fits(x) if fits else isinstance(x, kind)) else x,
        tree,
        is_leaf=is_leaf,
    )


def tree_any(pred: Callable, tree: Any, is_leaf: Callable | None = None) -> bool:
    """Return whether a condition holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all(pred: Callable, tree: Any, is_leaf: Callable | None = None) -> bool:
    """Return whether a condition holds for every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kind: Any, pred: Callable, tree: Any, is_leaf: Callable | None = None) -> bool:
    """Return whether a condition holds for every leaf of a type."""
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, kind))
