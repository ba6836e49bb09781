"""Reading the user's own samples: files, folders, frames, arrays, the data sets of other libraries."""

from safari.data.reading.for_model import clients_in, labels_in, open_for_model, samples_in
from safari.data.reading.options import CLIENT, Options
from safari.data.reading.read import (
    ENDINGS,
    columns_in,
    has_column,
    is_file_name,
    names_clients,
    read,
    read_path,
)

__all__ = [
    "CLIENT",
    "ENDINGS",
    "Options",
    "clients_in",
    "columns_in",
    "has_column",
    "is_file_name",
    "labels_in",
    "names_clients",
    "open_for_model",
    "read",
    "read_path",
    "samples_in",
]
