"""A formula as functions of a framework, from the text that Rust prints."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import numpy as np

from .signature import Signature


class Formula(NamedTuple):
    name: str
    arrays: Any
    forward: Any
    backward: Any
    reads: list[tuple[str, int]]
    grads: list[int]
    differentiable: list[int]

    def outputs(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs, in the shape that all inputs have together."""
        # Paddle has no such function.
        together = getattr(self.arrays, "broadcast_shapes", np.broadcast_shapes)
        shape = together(*(tuple(of.shape) for of in inputs))
        return [self.arrays.broadcast_to(of, shape) for of in self.forward(*inputs)]

    def gradients(self, inputs: Sequence[Any], outputs: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
        """The gradients of the differentiable inputs, each in the shape that all inputs have together."""
        place = {"input": inputs, "output": outputs}
        read = [place[kind][at] for kind, at in self.reads]
        found = self.backward(*read, *(grads[at] for at in self.grads))
        return [self.arrays.broadcast_to(of, grads[0].shape) for of in found]


def formula(signature: Signature, plain: Sequence[Any], library: str, names: dict[str, Any]) -> Formula | None:
    """The functions of the library that `names` has first; ``None`` for an op that is no formula, or whose outputs are reduced."""
    if not signature.is_formula:
        return None
    found = signature.op.formula(list(plain), library)
    if found is None:
        return None
    text, reads, grads, differentiable = found
    arrays, scope = next(iter(names.values())), dict(names)
    exec(compile(text, f"<{signature.name} of {library}>", "exec"), scope)
    return Formula(signature.name, arrays, scope["forward"], scope["backward"], reads, grads, differentiable)
