"""The archives `arrays.npz` and `compressed.npz`, and the file `fortran.npy` here: `python3 npy_files.py`;
NumPy 2 made them. tests/tests/nn/npy.rs reads them.
"""

import numpy as np

arrays = {
    "float64": np.array([[0.1, -2.5], [1e300, -0.0]]),
    "float32": np.array([1.5, np.inf, -3.25e-20], dtype=np.float32),
    "int64": np.array([-(2**63), 2**63 - 1]),
    "int32": np.array([[-(2**31)], [7]], dtype=np.int32),
    "uint8": np.array([0, 255, 3], dtype=np.uint8),
    "bool": np.array([[True, False, True]]),
    "scalar": np.array(4.0, dtype=np.float32),
    "empty": np.zeros((0, 3), dtype=np.float32),
    "layer.weight": np.arange(6.0).reshape(2, 3).T,
}
np.savez("arrays.npz", **arrays)
np.savez_compressed("compressed.npz", **arrays)
np.save("fortran.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
