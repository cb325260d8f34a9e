"""A formula as functions of a framework, from the text that Rust prints."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import numpy as np

from .signature import Signature


class Formula(NamedTuple):
    forward: Any
    backward: Any
    reads: list[tuple[str, int]]
    grads: list[int]
    differentiable: list[int]

    def outputs(self, broadcast_to: Any, inputs: Sequence[Any]) -> list[Any]:
        """The outputs, in the shape that all inputs have together."""
        return _in_shape(broadcast_to, self.forward(*inputs), inputs)

    def gradients(self, broadcast_to: Any, inputs: Sequence[Any], outputs: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
        """The gradients of the differentiable inputs, each in the shape that all inputs have together."""
        place = {"input": inputs, "output": outputs}
        read = [place[kind][at] for kind, at in self.reads]
        return _in_shape(broadcast_to, self.backward(*read, *(grads[at] for at in self.grads)), grads)


def _in_shape(broadcast_to: Any, found: Sequence[Any], of: Sequence[Any]) -> list[Any]:
    shape = np.broadcast_shapes(*(tuple(each.shape) for each in of))
    return [broadcast_to(each, shape) for each in found]


def formula(signature: Signature, plain: Sequence[Any], library: str, names: dict[str, Any]) -> Formula | None:
    """The functions; ``None`` for an op that is no formula, or whose outputs are reduced."""
    if not signature.is_formula:
        return None
    found = signature.op.formula(list(plain), library)
    if found is None:
        return None
    text, reads, grads, differentiable = found
    scope = dict(names)
    exec(compile(text, f"<{signature.name} of {library}>", "exec"), scope)
    return Formula(scope["forward"], scope["backward"], reads, grads, differentiable)
