"""Every format of one's own samples gives the same federation."""

import codecs

import numpy as np
import pytest
from patients import CLASSES, CLIENTS, COLUMNS, FEATURES, SERVER, TEST, TRAIN, arrays, by_folder, trained

import safari


def by_file(ending, write):
    def read(frame, folder, part):
        write(frame, folder / f"{part}.{ending}")
        return safari.read(folder / f"{part}.{ending}", **COLUMNS)

    return read


def as_excel_writes_it(frame, path):
    """In a country of decimal commas: UTF-8 with a mark, semicolons, empty lines at the end."""
    text = frame.write_csv(separator=";").replace(".", ",") + ";;;;\n\n"
    path.write_bytes(codecs.BOM_UTF8 + text.replace("\n", "\r\n").encode())


def by_pandas(frame, folder, part):
    pandas = pytest.importorskip("pandas")
    return safari.read(pandas.DataFrame(frame.to_dict(as_series=False)), **COLUMNS)


def by_numpy(frame, folder, part):
    x, y, client = arrays(frame)
    return safari.read(x, y, client, features=FEATURES)


def by_npz(frame, folder, part):
    x, y, client = arrays(frame)
    np.savez(folder / f"{part}.npz", x=x, y=y.astype(str), client=client.astype(str))
    return safari.read(folder / f"{part}.npz", scale="standard")


def by_hugging_face(frame, folder, part):
    datasets = pytest.importorskip("datasets")
    return safari.read(datasets.Dataset.from_dict(frame.to_dict(as_series=False)), **COLUMNS)


def by_torch(frame, folder, part):
    torch = pytest.importorskip("torch")
    x, y, client = arrays(frame)
    numbers = torch.tensor([CLASSES.index(name) for name in y])
    tensors = torch.utils.data.TensorDataset(torch.tensor(x), numbers)
    return safari.read(tensors, client=client)


FORMATS = {
    "csv of a spreadsheet": by_file("csv", as_excel_writes_it),
    "csv": by_file("csv", lambda frame, path: frame.write_csv(path)),
    "tsv": by_file("tsv", lambda frame, path: frame.write_csv(path, separator="\t")),
    "parquet": by_file("parquet", lambda frame, path: frame.write_parquet(path)),
    "arrow": by_file("arrow", lambda frame, path: frame.write_ipc(path)),
    "arrow stream": by_file("arrow", lambda frame, path: frame.write_ipc_stream(path)),
    "feather": by_file("feather", lambda frame, path: frame.write_ipc(path)),
    "a folder with one file a client": by_folder,
    "polars": lambda frame, folder, part: safari.read(frame, **COLUMNS),
    "pandas": by_pandas,
    "numpy": by_numpy,
    "npz": by_npz,
    "hugging face": by_hugging_face,
    "torch": by_torch,
}


def federation_by(read, folder):
    train, server, test = (
        read(frame, folder, part) for part, frame in (("train", TRAIN), ("server", SERVER), ("test", TEST))
    )
    return safari.federate(train, server=server, test=test)


@pytest.fixture(scope="module")
def expected():
    return trained(safari.federate(safari.read(TRAIN, **COLUMNS), server=safari.read(SERVER, **COLUMNS),
                                   test=safari.read(TEST, **COLUMNS)))  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_parameters_bit_for_bit(name, tmp_path, expected):
    federation = federation_by(FORMATS[name], tmp_path)
    assert federation.client_names == CLIENTS
    assert federation.server_samples == 40
    result = trained(federation)
    for key in expected.params:
        np.testing.assert_array_equal(result.params[key], expected.params[key])
    assert result.accuracy == expected.accuracy > 0.5
    if name != "torch":
        assert federation.dataset.labels == CLASSES
