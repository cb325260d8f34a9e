"""The safetensors files here: `python3 safetensors_files.py`; safetensors 0.8.0 and NumPy 2.4 made
them. tests/tests/safetensors.rs reads them and writes the same bytes.
"""

import numpy as np
from safetensors.numpy import save_file

tensors = {
    "float64": np.array([[0.1, -2.5], [1e300, -0.0]], dtype=np.float64),
    "float32": np.array([1.5, np.inf, -3.25e-20], dtype=np.float32),
    "int64": np.array([-(2**63), 2**63 - 1], dtype=np.int64),
    "int32": np.array([[-(2**31)], [7]], dtype=np.int32),
    "uint8": np.array([0, 255, 3], dtype=np.uint8),
    "bool": np.array([True, False, True]),
    "scalar": np.array(4.0, dtype=np.float32),
    "empty": np.zeros((0, 3), dtype=np.float32),
    'b.weight "quoted" \\ \n ω': np.array([1.0, 2.0], dtype=np.float32),
}
save_file(tensors, "all_types.safetensors", metadata={"format": "np\t\u0001é"})
save_file({}, "nothing.safetensors")

# Floats of 16 bits, by PyTorch 2.15: numbers of all sizes, and those half-way between two.
import torch
import safetensors.torch

parts = [
    torch.tensor([0.0, -0.0, 1.0, -2.5, 0.1, 65504.0, 65519.99, 65520.0, -1e30, 3.4e38, float("inf")]),
    torch.tensor([1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8]),
    torch.tensor([2.0**-24, 2.0**-25, 3 * 2.0**-25, 2.0**-14, 2.0**-14 - 2.0**-25, 1e-40, 1e-45]),
    torch.tensor([(-1.1) ** i for i in range(-400, 400, 7)]),
]
numbers = torch.cat(parts)
halves = {"numbers": numbers, "f16": numbers.half(), "bf16": numbers.bfloat16()}
safetensors.torch.save_file(halves, "halves.safetensors")
other = {
    "a.float8": torch.tensor([1.0, 2.0, 3.0]).to(torch.float8_e4m3fn),
    "a.float32": torch.tensor([1.0, 2.0, 3.0]),
    "int16": torch.tensor([[1, 2]], dtype=torch.int16),
    "scalar": torch.tensor(7, dtype=torch.uint16),
    "z": torch.tensor([True, False]),
}
safetensors.torch.save_file(other, "other_types.safetensors")
