"""Arrays by name: NumPy here, records on their way."""

import numpy as np
from flwr.app import Array, ArrayRecord

Arrays = dict[str, np.ndarray]


def numpy_arrays(record: ArrayRecord) -> Arrays:
    """The arrays of a record by name."""
    return {name: array.numpy() for name, array in record.items()}


def array_record(arrays: Arrays) -> ArrayRecord:
    """Arrays by name as Flower sends them."""
    return ArrayRecord({name: Array(np.asarray(array, order="C")) for name, array in arrays.items()})


def cast_like(record: ArrayRecord, like: ArrayRecord) -> ArrayRecord:
    """The arrays in the types of `like`: some strategies return float64 for float32."""
    if all(name in like and array.dtype == like[name].dtype for name, array in record.items()):
        return record
    made = {}
    for name, array in numpy_arrays(record).items():
        made[name] = array.astype(like[name].dtype) if name in like else array
    return array_record(made)
