"""Ops as functions of Paddle, each a ``PyLayer``. ``py_func`` puts them into a static program."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import paddle

from .eager import Caller
from .signature import Ops, Parameter, Signature


def bind(module: Any) -> Any:
    """The ops of a module, as functions of Paddle's tensors."""
    return Ops(module, _bound)


def _bound(module: Any, signature: Signature) -> Any:
    caller = Caller(module, signature, paddle.Tensor, paddle.from_dlpack)

    def op(*args: Any, **keywords: Any) -> Any:
        given = signature.arguments(args, keywords)
        args, tensors, form, differentiable = signature.split(given, lambda value, name, of: _tensor(signature, value, name, of))
        plain = [value if is_plain else None for value, is_plain in zip(given, signature.plain)]
        printed = caller.formula(plain, "paddle", {"paddle": paddle}) if signature.is_formula else None
        if printed is not None and not all(_on_cpu(of) for of in tensors):
            return _on_device(signature, printed, tensors)
        needs = [wants and not of.stop_gradient for of, wants in zip(tensors, differentiable)]
        if signature.has_backward and any(needs) and paddle.is_grad_enabled():
            found = _Layer.apply(_Call(caller, form, plain, needs), *tensors)
            return signature.results(list(found) if isinstance(found, (list, tuple)) else [found])
        outputs, _, _ = caller.forward([_detached(of) for of in args], [False] * len(tensors))
        return signature.results(outputs)

    return op


def _on_cpu(tensor: Any) -> bool:
    return tensor.place.is_cpu_place()


def _detached(arg: Any) -> Any:
    if isinstance(arg, list):
        return [_detached(of) for of in arg]
    # A tensor that wants a gradient has no `__dlpack__`.
    return arg.detach() if isinstance(arg, paddle.Tensor) and not arg.stop_gradient else arg


def _tensor(signature: Signature, value: Any, name: str, parameter: Parameter) -> Any:
    if isinstance(value, paddle.Tensor):
        return value
    if isinstance(value, (bool, int, float, list, tuple, np.ndarray, np.generic)):
        return paddle.to_tensor(np.asarray(value, dtype=None if isinstance(value, np.ndarray) else parameter.elements[0]))
    raise TypeError(f"{signature.name}: `{name}` must be a tensor, found {type(value).__name__}")


class _Call:
    """The arguments of a layer that are no tensors: Paddle would look for tensors in lists."""

    def __init__(self, *values: Any) -> None:
        self.values = values


class _Layer(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: Any) -> Any:
        caller, form, plain, needs = call.values
        values = [value for value, is_plain in zip(plain, caller.signature.plain) if is_plain]
        args = caller.signature.join(form, values, [_detached(of) for of in tensors])
        outputs, saved, state = caller.forward(args, needs)
        place = {"input": tensors, "output": outputs}
        ctx.save_for_backward(*(place[kind][at] if own is None else own for kind, at, own in saved))
        ctx.rest = (caller, state, needs)
        ctx.set_materialize_grads(False)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        caller, state, needs = ctx.rest
        saved = ctx.saved_tensor()
        recorded = paddle.is_grad_enabled() and any(not of.stop_gradient for of in (*saved, *grads) if of is not None)
        if recorded:
            call = _Call(caller, state, needs, len(saved), [of is not None for of in grads])
            found = _Gradient.apply(call, *saved, *(of for of in grads if of is not None))
            found = iter(found if isinstance(found, (list, tuple)) else [found])
            found = [next(found) if wanted else None for wanted in needs]
        else:
            found = caller.backward(state, [_detached(of) for of in saved], [_detached(of) for of in grads], needs)
        return found[0] if len(found) == 1 else tuple(found)


class _Gradient(paddle.autograd.PyLayer):
    """Backward as an op, whose gradient is the second derivative."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: Any) -> Any:
        caller, state, needs, count, given = call.values
        saved, rest = tensors[:count], iter(tensors[count:])
        grads = [next(rest) if is_given else None for is_given in given]
        found = caller.backward(state, [_detached(of) for of in saved], [_detached(of) for of in grads], needs)
        ctx.save_for_backward(*tensors)
        ctx.rest = (*call.values, [not of.stop_gradient for of in tensors])
        ctx.set_materialize_grads(False)
        found = [of if of is not None else paddle.zeros_like(saved[0]) for of, wanted in zip(found, needs) if wanted]
        return found[0] if len(found) == 1 else tuple(found)

    @staticmethod
    def backward(ctx: Any, *along: Any) -> Any:
        caller, state, needs, count, given, wanted = ctx.rest
        tensors = [_detached(of) for of in ctx.saved_tensor()]
        rest, along = iter(tensors[count:]), iter(along)
        grads = [next(rest) if is_given else None for is_given in given]
        every = [_detached(next(along)) if is_needed else None for is_needed in needs]
        saved, of_grads = caller.second(state, tensors[:count], grads, needs, every)
        found = [*saved, *(of for of, is_given in zip(of_grads, given) if is_given)]
        found = [of if wants else None for of, wants in zip(found, wanted)]
        return found[0] if len(found) == 1 else tuple(found)


def _on_device(signature: Signature, printed: Any, tensors: Sequence[Any]) -> Any:
    outputs = _Printed.apply(_Call(printed), *tensors)
    return signature.results(list(outputs) if isinstance(outputs, (list, tuple)) else [outputs])


class _Printed(paddle.autograd.PyLayer):
    """A formula of Paddle's ops: for tensors that are not on the CPU."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: Any) -> Any:
        (printed,) = call.values
        outputs = printed.outputs(tensors)
        ctx.save_for_backward(*tensors, *outputs)
        ctx.rest = (printed, len(tensors))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        printed, count = ctx.rest
        saved = ctx.saved_tensor()
        inputs, outputs = saved[:count], saved[count:]
        found = iter(printed.gradients(inputs, outputs, grads))
        each = [_sum_to(next(found), of) if at in printed.differentiable else None for at, of in enumerate(inputs)]
        return each[0] if len(each) == 1 else tuple(each)


def _sum_to(grad: Any, of: Any) -> Any:
    more = grad.ndim - of.ndim
    if more > 0:
        grad = grad.sum(list(range(more)))
    same = [axis for axis, length in enumerate(of.shape) if length == 1 and grad.shape[axis] != 1]
    return grad.sum(same, keepdim=True) if same else grad
