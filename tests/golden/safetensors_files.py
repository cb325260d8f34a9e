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
