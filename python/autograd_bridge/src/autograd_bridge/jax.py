"""Ops as functions of JAX: ``grad``, ``jit``, ``vmap``, ``checkpoint`` and ``scan`` apply.

A formula is printed as ``jax.numpy`` and fuses with its neighbours, on every device. Any other op is called by XLA, on
the CPU, with copies of its arguments: XLA frees their memory after the call.
"""

from __future__ import annotations

import functools
from typing import Any, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from .derivative import with_derivative
from .formula import formula
from .signature import Ops, Parameter, Signature, plan


def bind(module: Any) -> Any:
    """The ops of a module, as functions of JAX."""
    name = f"autograd.{module.__name__}"
    for which in ("forward", "backward", "second"):
        handler = getattr(module, f"xla_{which}")
        jax.ffi.register_ffi_target(f"{name}.{which}", handler, platform="cpu")
    return Ops(module, lambda module, signature: _bound(module, signature, name))


def _bound(module: Any, signature: Signature, target: str) -> Any:
    # One function for each form of a call. Each form is compiled anyway, so there are few.
    @functools.lru_cache(maxsize=None)
    def function(form: Any, plain: Any, specs: Any, differentiable: Any) -> Any:
        values = [value for value, is_plain in zip(plain, signature.plain) if is_plain]
        printed = formula(signature, values, "jax", {"jnp": jnp, "jax": jax})
        if printed is not None:
            return jax.jit(_printed(signature, printed, specs))
        return jax.jit(_called(module, signature, target, form, plain, specs, differentiable))

    def op(*args: Any, **keywords: Any) -> Any:
        given = signature.arguments(args, keywords)
        _, tensors, form, differentiable = signature.split(given, functools.partial(_array, signature))
        plain = tuple(
            _plain(signature, parameter, value) if parameter.form == "plain" else None
            for parameter, value in zip(signature.parameters, given)
        )
        specs = tuple((str(of.dtype), of.shape) for of in tensors)
        return function(form, plain, specs, tuple(differentiable))(*tensors)

    return op


def _array(signature: Signature, value: Any, name: str, parameter: Parameter) -> Any:
    if value is None:
        raise TypeError(f"{signature.name}: `{name}` must be an array, found None")
    if isinstance(value, (bool, int, float, list, tuple)):
        value = np.asarray(value, dtype=parameter.elements[0])
    try:
        array = jnp.asarray(value)
    except TypeError as error:
        raise TypeError(f"{signature.name}: `{name}` must be an array: {error}") from None
    # A formula is computed in any float type.
    is_real = signature.is_formula and parameter.elements != ["bool"]
    fits = jnp.issubdtype(array.dtype, jnp.floating) if is_real else str(array.dtype) in parameter.elements
    if not fits:
        expected = "a float" if is_real else " or ".join(parameter.elements)
        raise TypeError(f"{signature.name}: `{name}` must have element type {expected}, found {array.dtype}")
    return array


def _plain(signature: Signature, parameter: Parameter, value: Any) -> Any:
    """A plain argument, which must be known when the call is traced."""
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{signature.name}: `{parameter.name}` is a plain argument, which is known when a call is traced; here it is "
            "traced itself: make it static, by `static_argnames` of `jit`"
        )
    return signature.static(parameter, value)


def _sum_to(grad: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """A gradient in the shape that all inputs have together, for an input of another shape."""
    grad = jnp.asarray(grad, dtype).sum(tuple(range(grad.ndim - len(shape))))
    same = tuple(axis for axis, length in enumerate(shape) if length == 1 and grad.shape[axis] != 1)
    return grad.sum(same, keepdims=True) if same else grad


def _printed(signature: Signature, printed: Any, specs: Any) -> Any:
    def run(*xs: Any) -> Any:
        return signature.results(printed.outputs(xs))

    def forward(*xs: Any) -> Any:
        ys = printed.outputs(xs)
        kept = [[of if (kind, at) in printed.reads else None for at, of in enumerate(all)] for kind, all in (("input", xs), ("output", ys))]
        return signature.results(ys), kept

    def backward(kept: Any, grads: Any) -> Any:
        found = iter(printed.gradients(*kept, _flat(grads)))
        return tuple(
            _sum_to(next(found), shape, dtype) if at in printed.differentiable else None
            for at, (dtype, shape) in enumerate(specs)
        )

    def tangents(kept: Any, along: Any) -> Any:
        # Each output by itself: the slopes of a formula are those of its elements.
        shape = jnp.broadcast_shapes(*(shape for _, shape in specs))
        found = []
        for at in range(len(signature.outputs)):
            grads = [jnp.full(shape, float(of == at), specs[0][0]) for of in range(len(signature.outputs))]
            slopes = zip(printed.differentiable, printed.gradients(*kept, grads))
            found.append(sum(slope * along[of] for of, slope in slopes))
        return found

    return with_derivative(run, forward, backward, tangents)


def _called(module: Any, signature: Signature, target: str, form: Any, plain: Any, specs: Any, differentiable: Any) -> Any:
    """The op by three calls of XLA: forward, backward, and the gradient of backward."""
    name = signature.name
    needs = differentiable if signature.has_backward else tuple(False for _ in specs)
    probe = plan(signature, False, needs, form, plain, specs)
    try:
        outputs, saved, draws = module.abstract_of(probe)
    except (ValueError, RuntimeError) as error:
        outputs, saved, draws = signature.abstract(form, plain, specs), None, False
        if outputs is None:
            raise type(error)(
                f"{error} (JAX learns the shapes of results by a run on zeros, unless the op has a `shapes(..)`)"
            ) from None
    # What is not a tensor, or has an unknown shape, cannot be kept between two calls by XLA.
    again = signature.keeps_attrs or saved is None
    if again and draws and any(needs):
        raise RuntimeError(
            f"{name}: JAX runs forward again in backward, as the op keeps attributes, and forward draws random numbers; "
            "give them as an argument"
        )
    text = plan(signature, again, needs, form, plain, specs)
    structs = [jax.ShapeDtypeStruct(tuple(shape), dtype) for dtype, shape in outputs]
    intermediates = [] if again else [of for of in saved if of[0] == "intermediate"]
    extra = [jax.ShapeDtypeStruct(tuple(of[3]), of[2]) for of in intermediates]
    wanted = [jax.ShapeDtypeStruct(shape, dtype) for (dtype, shape), is_wanted in zip(specs, needs) if is_wanted]
    floats = [dtype.startswith("float") for dtype, _ in outputs]

    def ffi(which: str, results: Any, args: Any, text: str) -> Any:
        return jax.ffi.ffi_call(f"{target}.{which}", results, vmap_method="sequential")(*args, plan=text)

    nothing = plan(signature, True, [False] * len(specs), form, plain, specs)

    def refuse(*_: Any, what: str = "second derivative") -> Any:
        if signature.keeps_attrs:
            why = "in JAX, as the op keeps attributes (`type Attrs`)"
        elif again:
            why = "in JAX, as the op does not run on zeros"
        elif extra:
            why = "as the op saves a tensor that is neither an input nor an output"
        else:
            why = "of a backward in forward mode: use reverse mode (`jax.jacrev` twice for a Hessian)"
        raise TypeError(f"{name}: there is no {what} {why}")

    def run_saving(*xs: Any) -> Any:
        return tuple(ffi("forward", structs + extra, xs, text))

    saving = with_derivative(run_saving, lambda *xs: (saving(*xs), None), refuse, refuse)

    def forward(*xs: Any) -> Any:
        # Outputs that are residuals lead to this op again when a gradient is differentiated.
        if extra:
            found = saving(*xs)
            ys, more = list(found[: len(structs)]), iter(found[len(structs) :])
        else:
            ys, more = _flat(function(*xs)), iter(())
        place = {"input": xs, "output": ys}
        kept = list(xs) if again else [place[of[0]][of[1]] if of[0] in place else next(more) for of in saved]
        return signature.results(ys), tuple(kept)

    def backward(kept: Any, grads: Any) -> Any:
        given = [
            grad if is_float else jnp.zeros(of.shape, of.dtype)
            for grad, of, is_float in zip(_flat(grads), structs, floats)
        ]
        found = iter(gradients(kept, tuple(given)))
        return tuple(next(found) if is_wanted else None for is_wanted in needs)

    def run_backward(kept: Any, grads: Any) -> Any:
        return tuple(ffi("backward", wanted, (*kept, *grads), text))

    def second(residuals: Any, along: Any) -> Any:
        kept, grads = residuals
        if again or extra:
            refuse()
        every = (*kept, *grads)
        is_float = [jnp.issubdtype(of.dtype, jnp.floating) for of in every]
        structs = [jax.ShapeDtypeStruct(of.shape, of.dtype) for of, is_one in zip(every, is_float) if is_one]
        found = iter(ffi("second", structs, (*every, *along), text))
        every = [next(found) if is_one else None for is_one in is_float]
        return tuple(every[: len(kept)]), tuple(every[len(kept) :])

    gradients = with_derivative(run_backward, lambda *args: (gradients(*args), args), second, refuse)

    # Backward is linear in the gradients of the outputs, so that its own gradient by these is forward mode.
    @jax.custom_jvp
    def tangents(kept: Any, along: Any) -> Any:
        if again or extra:
            refuse(what="forward mode")
        zeros = tuple(jnp.zeros(of.shape, of.dtype) for of in structs)
        return [of for of in second((kept, zeros), along)[1] if of is not None]

    tangents.defjvp(refuse)

    def push(kept: Any, along: Any) -> Any:
        return tangents(kept, tuple(of for of, is_wanted in zip(along, needs) if is_wanted))

    def run(*xs: Any) -> Any:
        return signature.results(ffi("forward", structs, xs, nothing))

    function = with_derivative(run, forward, backward, push)
    return function


def _flat(results: Any) -> list[Any]:
    if not isinstance(results, (list, tuple)):
        return [results]
    return [of for each in results for of in (each if isinstance(each, list) else [each])]
