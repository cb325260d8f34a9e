"""Ops as library ops of PyTorch: its compilers write calls of these into a graph, and do not look into them.

What forward keeps beside tensors has no place in a graph, so backward runs forward again.
"""

from __future__ import annotations

import functools
import json
from typing import Any, Sequence

import torch

from .eager import Caller
from .signature import plan


class Compiled:
    """The two library ops of an op. The form of a call, its plain arguments and which gradients are wanted are a text."""

    def __init__(self, module: Any, caller: Caller) -> None:
        self.module, self.caller, self.signature = module, caller, caller.signature
        name = f"{module.__name__}::{self.signature.name}"
        self.forward = _library_op(name, "Tensor[] tensors, str call", self._forward, self._fake_forward)
        parameters = "Tensor[] tensors, Tensor?[] grads, str call"
        self.backward = _library_op(f"{name}_backward", parameters, self._backward, self._fake_backward)

    def text(self, form: Any, plain: Sequence[Any], needs: Sequence[bool]) -> str:
        each = zip(self.signature.parameters, plain)
        plain = [self.signature.static(of, value) if of.form == "plain" else None for of, value in each]
        return json.dumps([form, plain, needs])

    def _args(self, tensors: Sequence[Any], call: str) -> tuple[list[Any], list[bool]]:
        form, plain, needs = json.loads(call)
        values = [value for value, is_plain in zip(plain, self.signature.plain) if is_plain]
        return self.signature.join(form, values, tensors), needs

    def _forward(self, tensors: Sequence[Any], call: str) -> list[Any]:
        args, _ = self._args(tensors, call)
        return self.caller.forward(args, [False] * len(tensors))[0]

    def _backward(self, tensors: Sequence[Any], grads: Sequence[Any], call: str) -> list[Any]:
        args, needs = self._args(tensors, call)
        if self._on_zeros(call, _specs(tensors))[1]:
            raise RuntimeError(
                f"{self.signature.name}: what is compiled runs forward again in backward, and forward draws random numbers; "
                "give them as an argument"
            )
        outputs, saved, state = self.caller.forward(args, needs)
        place = {"input": tensors, "output": outputs}
        saved = [place[kind][at] if own is None else own for kind, at, own in saved]
        grads = [None if grad is None else grad.contiguous() for grad in grads]
        found = zip(self.caller.backward(state, saved, grads, needs), tensors, needs)
        return [torch.zeros_like(of) if grad is None else grad for grad, of, is_wanted in found if is_wanted]

    def _fake_forward(self, tensors: Sequence[Any], call: str) -> list[Any]:
        form, plain, _ = json.loads(call)
        specs = _specs(tensors)
        outputs = self.signature.abstract(form, plain, specs)
        if outputs is None:
            if torch.compiler.is_exporting() and any(isinstance(of, torch.SymInt) for _, shape in specs for of in shape):
                raise RuntimeError(f"{self.signature.name}: lengths that are symbols need an op with a `shapes(..)`")
            outputs, _ = self._on_zeros(call, tuple((dtype, tuple(map(int, shape))) for dtype, shape in specs))
            if isinstance(outputs, Exception):
                raise type(outputs)(f"{outputs} (PyTorch learns the shapes of results by a run on zeros, unless the op has a `shapes(..)`)")
        return [torch.empty(shape, dtype=getattr(torch, dtype)) for dtype, shape in outputs]

    def _fake_backward(self, tensors: Sequence[Any], grads: Sequence[Any], call: str) -> list[Any]:
        _, _, needs = json.loads(call)
        return [torch.empty(of.shape, dtype=of.dtype) for of, is_wanted in zip(tensors, needs) if is_wanted]

    @functools.lru_cache(maxsize=None)
    def _on_zeros(self, call: str, specs: Any) -> tuple[Any, bool]:
        """The element types and shapes of the outputs, or the error; and whether the op draws random numbers."""
        form, plain, needs = json.loads(call)
        try:
            outputs, _, draws = self.module.abstract_of(plan(self.signature, True, needs, form, plain, specs))
        except (ValueError, RuntimeError) as error:
            return error, False
        return outputs, draws


def _library_op(name: str, parameters: str, function: Any, fake: Any) -> Any:
    op = torch.library.custom_op(name, function, mutates_args=(), device_types="cpu", schema=f"({parameters}) -> Tensor[]")
    op.register_fake(fake)
    return op


def _specs(tensors: Sequence[Any]) -> Any:
    return tuple((str(of.dtype)[6:], tuple(of.shape)) for of in tensors)


def is_traced(tensors: Sequence[Any]) -> bool:
    """Whether a call is recorded, so that its tensors may have no memory."""
    return torch.utils._python_dispatch.is_in_torch_dispatch_mode() or any(
        type(of) is not torch.Tensor and type(of) is not torch.nn.Parameter for of in tensors
    )
