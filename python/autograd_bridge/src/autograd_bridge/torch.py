"""Ops as functions of PyTorch, each an ``autograd.Function`` with ``vmap``."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .eager import Caller
from .signature import Ops, Parameter, Signature


def bind(module: Any) -> Any:
    """The ops of a module, as functions of PyTorch's tensors."""
    return Ops(module, _bound)


def _bound(module: Any, signature: Signature) -> Any:
    caller = Caller(module, signature, torch.Tensor, torch.from_dlpack)

    @torch.compiler.disable
    def op(*args: Any, **keywords: Any) -> Any:
        given = signature.arguments(args, keywords)
        _, tensors, form, differentiable = signature.split(given, lambda value, name, of: _tensor(signature, value, name, of))
        plain = tuple(value if is_plain else None for value, is_plain in zip(given, signature.plain))
        if any(of.device.type != "cpu" for of in tensors):
            printed = caller.formula(plain, "torch", {"torch": torch}) if signature.is_formula else None
            if printed is None:
                at = next(of.device for of in tensors if of.device.type != "cpu")
                raise TypeError(f"{signature.name}: tensors must be on the CPU, found {at}: only a formula runs on other devices")
            return signature.results(_Printed.apply(printed, *tensors))
        found = _Function.apply(caller, form, plain, tuple(differentiable), *tensors)
        count = found[-1][0]
        return signature.results(found[:count])

    return op


def _tensor(signature: Signature, value: Any, name: str, parameter: Parameter) -> Any:
    if isinstance(value, torch.Tensor):
        if torch.is_autocast_enabled("cpu") and value.is_floating_point() and str(value.dtype)[6:] not in parameter.elements:
            return value.to(getattr(torch, parameter.elements[0]))
        return value
    if isinstance(value, (bool, int, float, list, tuple, np.ndarray, np.generic)):
        dtype = None if isinstance(value, np.ndarray) else parameter.elements[0]
        return torch.from_numpy(np.array(value, dtype=dtype))
    raise TypeError(f"{signature.name}: `{name}` must be a tensor, found {type(value).__name__}")


class _Function(torch.autograd.Function):
    """Returns the outputs, the saved intermediates, and ``(number of outputs, saved places, state)``."""

    @staticmethod
    def forward(caller: Caller, form: Any, plain: Any, differentiable: Any, *tensors: Any) -> Any:
        signature = caller.signature
        values = [value for value, is_plain in zip(plain, signature.plain) if is_plain]
        args = signature.join(form, values, [of.detach() for of in tensors])
        needs = [wants and signature.has_backward for wants in differentiable]
        outputs, saved, state = caller.forward(args, needs)
        own = [of for _, _, of in saved if of is not None]
        return (*outputs, *own, (len(outputs), [(kind, at) for kind, at, _ in saved], state))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        caller, _, _, differentiable, *tensors = inputs
        *results, (count, places, state) = output
        outputs, own = results[:count], iter(results[count:])
        ctx.mark_non_differentiable(*results[count:], *(of for of in outputs if not of.is_floating_point()))
        place = {"input": tensors, "output": outputs}
        ctx.save_for_backward(*(place[kind][at] if kind in place else next(own) for kind, at in places))
        ctx.rest = (caller, state, differentiable, count)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        caller, state, differentiable, count = ctx.rest
        needs = tuple(wants and is_needed for wants, is_needed in zip(differentiable, ctx.needs_input_grad[4:]))
        grads = grads[:count]
        given = tuple(of is not None for of in grads)
        saved = ctx.saved_tensors
        if not torch.is_grad_enabled() and not torch._C._are_functorch_transforms_active():
            grads = [of if of is None else of.contiguous() for of in grads]
            return (None, None, None, None, *caller.backward(state, saved, grads, needs))
        found = _Gradient.apply(caller, state, needs, len(saved), given, *saved, *(of for of in grads if of is not None))
        return (None, None, None, None, *found)

    @staticmethod
    def vmap(info: Any, in_dims: Any, caller: Any, form: Any, plain: Any, differentiable: Any, *tensors: Any) -> Any:
        found = []
        for i in range(info.batch_size):
            each = [of if dim is None else of.select(dim, i) for of, dim in zip(tensors, in_dims[4:])]
            called = _Function.apply(caller, form, plain, differentiable, *each)
            found.append(called[: called[-1][0]])
        outputs = [torch.stack(of) for of in zip(*found)]
        return (*outputs, (len(outputs), [], None)), (*(0 for _ in outputs), None)

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise RuntimeError(f"{ctx.rest[0].signature.name}: there is no forward mode (jvp) through an op of Rust")


class _Gradient(torch.autograd.Function):
    """Backward as an op, whose gradient is the second derivative."""

    @staticmethod
    def forward(caller: Caller, state: Any, needs: Any, count: int, given: Any, *tensors: Any) -> Any:
        tensors = [of.detach() for of in tensors]
        rest = iter(tensors[count:])
        grads = [next(rest).contiguous() if is_given else None for is_given in given]
        return tuple(caller.backward(state, tensors[:count], grads, needs))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        caller, state, needs, count, given, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.rest = (caller, state, needs, count, given)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *along: Any) -> Any:
        caller, state, needs, count, given = ctx.rest
        tensors = [of.detach() for of in ctx.saved_tensors]
        rest = iter(tensors[count:])
        grads = [next(rest) if is_given else None for is_given in given]
        along = [None if of is None else of.detach() for of in along]
        saved, of_grads = caller.second(state, tensors[:count], grads, needs, along)
        return (None,) * 5 + (*saved, *(of for of, is_given in zip(of_grads, given) if is_given))

    @staticmethod
    def vmap(info: Any, in_dims: Any, caller: Any, state: Any, needs: Any, count: int, given: Any, *tensors: Any) -> Any:
        found = []
        for i in range(info.batch_size):
            each = [of if dim is None else of.select(dim, i) for of, dim in zip(tensors, in_dims[5:])]
            found.append(_Gradient.apply(caller, state, needs, count, given, *each))
        outputs = tuple(None if of[0] is None else torch.stack(of) for of in zip(*found))
        return outputs, tuple(None if of is None else 0 for of in outputs)

    @staticmethod
    def jvp(ctx: Any, *_: Any) -> Any:
        raise RuntimeError(f"{ctx.rest[0].signature.name}: there is no forward mode (jvp) through an op of Rust")


class _Printed(torch.autograd.Function):
    """A formula of PyTorch's ops: for tensors that are not on the CPU."""

    @staticmethod
    def forward(printed: Any, *tensors: Any) -> Any:
        return tuple(printed.outputs(torch.broadcast_to, tensors))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        printed, *tensors = inputs
        ctx.save_for_backward(*tensors, *output)
        ctx.rest = (printed, len(tensors))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        printed, count = ctx.rest
        inputs, outputs = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        found = iter(printed.gradients(torch.broadcast_to, inputs, outputs, grads))
        return (None, *(next(found).sum_to_size(of.shape) if at in printed.differentiable else None for at, of in enumerate(inputs)))
