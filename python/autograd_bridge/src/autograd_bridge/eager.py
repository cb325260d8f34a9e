"""Calls of an op from a framework whose graph is recorded while it runs: PyTorch and Paddle."""

from __future__ import annotations

from typing import Any, Sequence

from .formula import Formula, formula
from .signature import Signature


class Caller:
    """An op, with the way in which tensors go to Rust and back."""

    def __init__(self, module: Any, signature: Signature, tensor: type, from_dlpack: Any) -> None:
        self.signature = signature
        self.op = signature.op
        self.from_dlpack = from_dlpack
        # With a table of functions, Rust makes tensors of the framework itself.
        has_table = hasattr(tensor, "__dlpack_c_exchange_api__")
        self.exchange = module.Exchange(tensor) if has_table else None
        self._formulas: dict[Any, Formula | None] = {}

    def formula(self, plain: Sequence[Any], library: str, names: dict[str, Any]) -> Formula | None:
        key = tuple(plain)
        if key not in self._formulas:
            values = [value for value, is_plain in zip(plain, self.signature.plain) if is_plain]
            self._formulas[key] = formula(self.signature, values, library, names)
        return self._formulas[key]

    def _made(self, tensor: Any) -> Any:
        return tensor if tensor is None or self.exchange is not None else self.from_dlpack(tensor)

    def forward(self, args: list[Any], needs: list[bool]) -> tuple[list[Any], list[tuple[str, int, Any]], Any]:
        """The outputs; the saved tensors, each by its place or, if it has none, itself; and the rest."""
        outputs, saved, state = self.op.forward(args, needs, self.exchange)
        if self.exchange is None:
            outputs = [self._made(of) for of in outputs]
            saved = [(kind, at, self._made(own)) for kind, at, own in saved]
        return outputs, saved, state

    def backward(self, state: Any, saved: Sequence[Any], grads: Sequence[Any], needs: Sequence[bool]) -> list[Any]:
        found = self.op.backward(state, list(saved), list(grads), list(needs), self.exchange)
        return [self._made(of) for of in found]

    def second(self, state: Any, saved: Sequence[Any], grads: Sequence[Any], needs: Sequence[bool], along: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        found = self.op.second(state, list(saved), list(grads), list(needs), list(along), self.exchange)
        of_saved, of_grads = ([self._made(of) for of in each] for each in found)
        return of_saved, of_grads
