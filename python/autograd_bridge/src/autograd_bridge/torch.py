"""Ops as functions of PyTorch, each an ``autograd.Function`` with ``vmap``."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Sequence

import numpy as np
import torch

from .compiled import Compiled, is_traced
from .eager import Caller
from .signature import Ops, Parameter, Signature


def bind(module: Any) -> Any:
    """The ops of a module, as functions of PyTorch's tensors."""
    return Ops(module, _bound)


# A library op is defined once in a process.
@functools.lru_cache(maxsize=None)
def _compiled(module: Any, op: Any) -> Compiled:
    return Compiled(module, Caller(module, Signature(op), torch.Tensor, torch.from_dlpack))


def _bound(module: Any, signature: Signature) -> Any:
    compiled = _compiled(module, signature.op)

    def op(*args: Any, **keywords: Any) -> Any:
        given = signature.arguments(args, keywords)
        _, tensors, form, differentiable = signature.split(given, lambda value, name, of: _tensor(signature, value, name, of))
        plain = tuple(value if is_plain else None for value, is_plain in zip(given, signature.plain))
        on_cpu = all(of.device.type == "cpu" for of in tensors)
        if signature.is_formula and not (on_cpu and not is_traced(tensors)):
            printed = compiled.caller.formula(plain, "torch", {"torch": torch})
            if printed is not None:
                return signature.results(_Printed.apply(printed, *tensors))
        if not on_cpu:
            at = next(of.device for of in tensors if of.device.type != "cpu")
            raise TypeError(f"{signature.name}: tensors must be on the CPU, found {at}: only a formula runs on other devices")
        found = _Function.apply(compiled, form, plain, tuple(differentiable), *tensors)
        count = found[-1][0]
        return signature.results(found[:count])

    # A compiled program that calls a function is used again for each with the same code.
    op.__code__ = op.__code__.replace(co_name=signature.name)
    return torch.compiler.allow_in_graph(op)


def _tensor(signature: Signature, value: Any, name: str, parameter: Parameter) -> Any:
    if isinstance(value, torch.Tensor):
        if torch.is_autocast_enabled("cpu") and value.is_floating_point() and str(value.dtype)[6:] not in parameter.elements:
            return value.to(getattr(torch, parameter.elements[0]))
        return value
    if isinstance(value, (bool, int, float, list, tuple, np.ndarray, np.generic)):
        dtype = None if isinstance(value, np.ndarray) else parameter.elements[0]
        return torch.from_numpy(np.array(value, dtype=dtype))
    raise TypeError(f"{signature.name}: `{name}` must be a tensor, found {type(value).__name__}")


class _Traced(NamedTuple):
    """What a recorded call keeps beside its arguments."""

    form: Any
    plain: Any


class _Function(torch.autograd.Function):
    """Returns the outputs, the saved intermediates, and ``(number of outputs, saved places, state)``."""

    @staticmethod
    def forward(compiled: Compiled, form: Any, plain: Any, differentiable: Any, *tensors: Any) -> Any:
        caller, signature = compiled.caller, compiled.signature
        tensors = [of.detach() for of in tensors]
        if is_traced(tensors):
            outputs = compiled.forward(tensors, compiled.text(form, plain, differentiable))
            return (*outputs, (len(outputs), [("input", at) for at in range(len(tensors))], _Traced(form, plain)))
        values = [value for value, is_plain in zip(plain, signature.plain) if is_plain]
        args = signature.join(form, values, tensors)
        needs = [wants and signature.has_backward for wants in differentiable]
        outputs, saved, state = caller.forward(args, needs)
        own = [of for _, _, of in saved if of is not None]
        return (*outputs, *own, (len(outputs), [(kind, at) for kind, at, _ in saved], state))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        compiled, _, _, differentiable, *tensors = inputs
        *results, (count, places, state) = output
        outputs, own = results[:count], iter(results[count:])
        ctx.mark_non_differentiable(*results[count:], *(of for of in outputs if not of.is_floating_point()))
        place = {"input": tensors, "output": outputs}
        ctx.save_for_backward(*(place[kind][at] if kind in place else next(own) for kind, at in places))
        ctx.rest = (compiled, state, differentiable, count)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        compiled, state, differentiable, count = ctx.rest
        needs = tuple(wants and is_needed for wants, is_needed in zip(differentiable, ctx.needs_input_grad[4:]))
        grads = grads[:count]
        given = tuple(of is not None for of in grads)
        saved = ctx.saved_tensors
        if not torch.is_grad_enabled() and not torch._C._are_functorch_transforms_active():
            return (None, None, None, None, *_gradients(compiled, state, saved, grads, needs))
        found = _Gradient.apply(compiled, state, needs, len(saved), given, *saved, *(of for of in grads if of is not None))
        return (None, None, None, None, *found)

    @staticmethod
    def vmap(info: Any, in_dims: Any, compiled: Any, form: Any, plain: Any, differentiable: Any, *tensors: Any) -> Any:
        found = []
        for i in range(info.batch_size):
            each = [of if dim is None else of.select(dim, i) for of, dim in zip(tensors, in_dims[4:])]
            called = _Function.apply(compiled, form, plain, differentiable, *each)
            found.append(called[: called[-1][0]])
        outputs = [torch.stack(of) for of in zip(*found)]
        return (*outputs, (len(outputs), [], None)), (*(0 for _ in outputs), None)

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise _no_forward_mode(ctx.rest[0].signature.name)


def _gradients(compiled: Compiled, state: Any, saved: Sequence[Any], grads: Sequence[Any], needs: Sequence[bool]) -> list[Any]:
    if isinstance(state, _Traced):
        found = iter(compiled.backward(saved, grads, compiled.text(*state, needs)))
        return [next(found) if is_wanted else None for is_wanted in needs]
    grads = [of if of is None else of.contiguous() for of in grads]
    return compiled.caller.backward(state, saved, grads, needs)


class _Gradient(torch.autograd.Function):
    """Backward as an op, whose gradient is the second derivative."""

    @staticmethod
    def forward(compiled: Compiled, state: Any, needs: Any, count: int, given: Any, *tensors: Any) -> Any:
        tensors = [of.detach() for of in tensors]
        rest = iter(tensors[count:])
        grads = [next(rest) if is_given else None for is_given in given]
        return tuple(_gradients(compiled, state, tensors[:count], grads, needs))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        compiled, state, needs, count, given, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.rest = (compiled, state, needs, count, given)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *along: Any) -> Any:
        compiled, state, needs, count, given = ctx.rest
        if isinstance(state, _Traced):
            raise RuntimeError(f"{compiled.signature.name}: there is no second derivative of what is compiled")
        tensors = [of.detach() for of in ctx.saved_tensors]
        rest = iter(tensors[count:])
        grads = [next(rest) if is_given else None for is_given in given]
        along = [None if of is None else of.detach() for of in along]
        saved, of_grads = compiled.caller.second(state, tensors[:count], grads, needs, along)
        return (None,) * 5 + (*saved, *(of for of, is_given in zip(of_grads, given) if is_given))

    @staticmethod
    def vmap(info: Any, in_dims: Any, compiled: Any, state: Any, needs: Any, count: int, given: Any, *tensors: Any) -> Any:
        found = []
        for i in range(info.batch_size):
            each = [of if dim is None else of.select(dim, i) for of, dim in zip(tensors, in_dims[5:])]
            found.append(_Gradient.apply(compiled, state, needs, count, given, *each))
        outputs = tuple(None if of[0] is None else torch.stack(of) for of in zip(*found))
        return outputs, tuple(None if of is None else 0 for of in outputs)

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise _no_forward_mode(ctx.rest[0].signature.name)


class _Printed(torch.autograd.Function):
    """A formula of PyTorch's ops: for tensors that are not on the CPU, and for compilers, which fuse it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(printed: Any, *tensors: Any) -> Any:
        return tuple(printed.outputs(tensors))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        printed, *tensors = inputs
        ctx.save_for_backward(*tensors, *output)
        ctx.rest = (printed, len(tensors))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        printed, count = ctx.rest
        inputs, outputs = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        found = iter(printed.gradients(inputs, outputs, grads))
        return (None, *(next(found).sum_to_size(of.shape) if at in printed.differentiable else None for at, of in enumerate(inputs)))

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise _no_forward_mode(ctx.rest[0].name)


def _no_forward_mode(name: str) -> RuntimeError:
    return RuntimeError(f"{name}: there is no forward mode (jvp) through an op of Rust")
