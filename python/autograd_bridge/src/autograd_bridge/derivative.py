"""Functions of JAX with a gradient and with tangents of their own: ``jax.custom_vjp`` has no forward mode."""

from __future__ import annotations

from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

# The tangents of results, linear in those of the arguments: reverse mode transposes it, forward mode runs it.
_tangents = Primitive("autograd_tangents")
_tangents.multiple_results = True


def with_derivative(run: Callable[..., Any], forward: Callable[..., Any], pull: Callable[..., Any], push: Callable[..., Any]) -> Any:
    """The function ``run``. ``forward`` returns its results too, and what the others take first; ``pull`` takes the
    gradients of the results, and returns those of the arguments; ``push`` takes the tangents of the arguments, and
    returns those of the results. Results that are no floats have none, and arguments have zeros."""
    function = jax.custom_jvp(run)

    @function.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        results, kept = forward(*primals)
        kept, kept_tree = jax.tree.flatten(kept)
        tangents, args_tree = jax.tree.flatten(tangents)
        ys, results_tree = jax.tree.flatten(results)
        of_args, of_results = _Floats(tangents, args_tree), _Floats(ys, results_tree)

        def pull_flat(kept: Any, grads: Any) -> Any:
            found = pull(kept_tree.unflatten(kept), of_results.full(grads))
            found, _ = jax.tree.flatten(found, is_leaf=lambda of: of is None)
            each = zip(found, of_args.specs)
            return [jnp.zeros(of.shape, of.dtype) if grad is None else grad for grad, of in each if _is_float(of)]

        def push_flat(kept: Any, tangents: Any) -> Any:
            found = push(kept_tree.unflatten(kept), of_args.full(tangents))
            return [of for of in jax.tree.leaves(found) if _is_float(of)]

        linear = [of for of in tangents if _is_float(of)]
        types = tuple(jax.typeof(of) for of in ys if _is_float(of))
        found = iter(_tangents.bind(*kept, *linear, kept=len(kept), pull=pull_flat, push=push_flat, types=types))
        dys = [next(found) if _is_float(of) else np.zeros(of.shape, jax.dtypes.float0) for of in ys]
        return results, results_tree.unflatten(dys)

    return function


class _Floats:
    """The floats of a tree."""

    def __init__(self, leaves: Any, tree: Any) -> None:
        self.specs = [jax.ShapeDtypeStruct(of.shape, of.dtype) for of in leaves]
        self.tree = tree

    def full(self, floats: Any) -> Any:
        """The tree with these, and ``None`` for the others."""
        each = iter(floats)
        return self.tree.unflatten([next(each) if _is_float(of) else None for of in self.specs])


def _is_float(of: Any) -> bool:
    return jnp.issubdtype(of.dtype, jnp.floating)


def _run(*args: Any, kept: int, push: Any, **_: Any) -> Any:
    return push(args[:kept], args[kept:])


def _jvp(primals: Any, tangents: Any, **call: Any) -> Any:
    tangents = [ad.instantiate_zeros(of) for of in tangents]
    return jax.jvp(lambda *args: _run(*args, **call), tuple(primals), tuple(tangents))


def _transposed(grads: Any, *args: Any, kept: int, pull: Any, **_: Any) -> Any:
    found = pull(args[:kept], [ad.instantiate_zeros(of) for of in grads])
    linear = zip(args[kept:], found)
    return [None] * kept + [grad if ad.is_undefined_primal(of) else None for of, grad in linear]


def _batched(args: Any, axes: Any, *, kept: int, pull: Any, push: Any, types: Any) -> Any:
    size = next(of.shape[axis] for of, axis in zip(args, axes) if axis is not None)
    args = [of if axis is None else jnp.moveaxis(of, axis, 0) for of, axis in zip(args, axes)]
    linear = [jnp.broadcast_to(of, (size, *of.shape)) if axis is None else of for of, axis in zip(args[kept:], axes[kept:])]
    of_kept = tuple(None if axis is None else 0 for axis in axes[:kept])

    def each(function: Any) -> Any:
        return lambda kept, floats: jax.vmap(function, (of_kept, 0))(tuple(kept), tuple(floats))

    types = tuple(of.update(shape=(size, *of.shape)) for of in types)
    found = _tangents.bind(*args[:kept], *linear, kept=kept, pull=each(pull), push=each(push), types=types)
    return found, [0] * len(found)


_tangents.def_impl(_run)
_tangents.def_abstract_eval(lambda *_, types, **__: list(types))
ad.primitive_jvps[_tangents] = _jvp
ad.primitive_transposes[_tangents] = _transposed
batching.primitive_batchers[_tangents] = _batched
mlir.register_lowering(_tangents, mlir.lower_fun(_run, multiple_results=True))
