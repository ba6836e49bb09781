"""Reading one's own samples: columns, names, gaps and folders; what was read is named."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from patients import CLASSES, CLIENTS, COLUMNS, FEATURES, SERVER, TEST, TRAIN, arrays, by_folder, trained

import safari
from safari.data.reading import names_clients
from safari.errors import InputWarning


def test_what_was_read_is_named():
    assert repr(safari.read(TRAIN, **COLUMNS)).startswith(
        "Samples(the frame: 240 samples, 3 features, 3 classes"
    )
    dataset = safari.federate(safari.read(TRAIN, **COLUMNS), server=safari.read(SERVER, **COLUMNS)).dataset
    assert dataset.features == FEATURES
    assert dataset.labels == CLASSES
    assert dataset.client_names == CLIENTS
    assert dataset.own_server == 40


def test_features_are_standardised_by_the_servers_samples_that_it_trains_on():
    own = safari.read(SERVER, **COLUMNS)
    federation = safari.federate(safari.read(TRAIN, **COLUMNS), server=own, validation=0.25)
    dataset = federation.dataset
    seen = dataset.normalise(dataset.shaped(dataset.x[federation.held_by(None)]))
    np.testing.assert_allclose(np.mean(seen, axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(np.std(seen, axis=0), 1, atol=1e-5)
    plain = safari.federate(safari.read(TRAIN, **COLUMNS, scale="none"), server=own).dataset
    np.testing.assert_array_equal(plain.normalise(plain.x), plain.x)


def test_a_feature_that_is_constant_at_the_server_stays_finite_and_small():
    server = SERVER.with_columns(age=pl.lit(70.0))
    train = safari.read(TRAIN, **COLUMNS)
    dataset = safari.federate(train, server=safari.read(server, **COLUMNS)).dataset
    seen = np.asarray(dataset.normalise(dataset.x))[:, 0]
    assert np.isfinite(seen).all()
    assert np.abs(seen).max() < 2


def test_missing_values_become_the_mean_of_the_servers_samples():
    train = TRAIN.with_columns(
        age=pl.when(pl.int_range(pl.len()) % 7 == 0).then(None).otherwise(pl.col("age"))
    )
    server = SERVER.with_columns(age=pl.when(pl.int_range(pl.len()) < 3).then(None).otherwise(pl.col("age")))
    read = safari.read(train, **COLUMNS, missing="mean")
    dataset = safari.federate(read, server=safari.read(server, **COLUMNS, missing="mean")).dataset
    mean = np.float32(server["age"].mean())
    assert dataset.fill is not None
    np.testing.assert_allclose(dataset.fill[0], mean, rtol=1e-6)
    assert np.isfinite(dataset.x).all()
    assert (np.asarray(dataset.x)[:, 0] == dataset.fill[0]).sum() >= 3


def test_a_file_given_as_server_is_read_as_the_samples_were(tmp_path):
    TRAIN.write_csv(tmp_path / "patients.csv")
    SERVER.drop("hospital").select("diagnosis", *reversed(FEATURES)).write_csv(tmp_path / "centre.csv")
    train = safari.read(tmp_path / "patients.csv", **COLUMNS)
    one = safari.federate(train, server=tmp_path / "centre.csv").dataset
    two = safari.federate(train, server=safari.read(SERVER, **COLUMNS)).dataset
    np.testing.assert_array_equal(one.x, two.x)
    np.testing.assert_array_equal(one.scale, two.scale)


def test_numbers_name_classes_and_clients_as_well_and_are_sorted_as_numbers():
    frame = pl.DataFrame(
        {"a": np.arange(60.0), "label": np.arange(60) % 3 * 5, "client": np.arange(60) % 4 + 8}
    )
    read = safari.read(frame)
    assert read.labels == ("0", "5", "10")
    assert read.clients == ("8", "9", "10", "11")
    federation = safari.federate(read, server=safari.ServerSet(10))
    assert federation.client_names == ("8", "9", "10", "11")
    excluded = safari.Participation(excluded=(9, "11")).resolve(4, 0, federation.client_names)
    assert excluded.excluded_clients == (1, 3)


def test_numbers_with_fractions_name_classes_whatever_they_are_read_from(tmp_path):
    grades = np.tile([1.5, 2.0, -0.5], 20)
    frame = pl.DataFrame({"a": np.arange(60.0), "label": grades, "client": np.repeat([0.5, 1.0], 30)})
    (tmp_path / "short.csv").write_text(frame.write_csv().replace("2.0,", "2,"))
    for given in (frame, tmp_path / "short.csv"):
        read = safari.read(given)
        assert read.labels == ("-0.5", "1.5", "2")
        assert read.clients == ("0.5", "1")
    read = safari.read(frame[["a"]].to_numpy(), grades)
    assert read.labels == ("-0.5", "1.5", "2")


def test_a_trace_may_name_clients(tmp_path):
    (tmp_path / "trace.csv").write_text("round,client\n1,north\n2,harbour\n2,north\n")
    participation = safari.Participation(availability=safari.Trace(tmp_path / "trace.csv"))
    trace = participation.resolve(3, 0, CLIENTS).availability
    assert trace.init(None, 3).tolist() == [[False, False, True], [True, False, True]]
    with pytest.raises(safari.InputError, match=r"names client north: unknown client; .*known are south"):
        participation.resolve(1, 0, ("south",))


def test_names_in_a_csv_file_stay_what_they_are(tmp_path):
    (tmp_path / "a.csv").write_text("a,label,client\n1,007,01\n2,7,1\n3, 7 ,01\n")
    read = safari.read(tmp_path / "a.csv")
    assert read.labels == ("007", "7")
    assert read.clients == ("01", "1")
    assert read.y.tolist() == [0, 1, 1]


def test_no_client_loses_all_it_has_to_the_test_set():
    frame = TRAIN.with_columns(hospital=pl.int_range(pl.len()).cast(pl.String))
    federation = safari.federate(safari.read(frame[:50], **COLUMNS), server=safari.read(SERVER, **COLUMNS),
                                 test=safari.read(TEST, **COLUMNS))  # fmt: skip
    assert federation.size == 50
    read = safari.read(TRAIN.with_columns(hospital=pl.when(pl.int_range(pl.len()) == 20).then(pl.lit("one"))
                                          .otherwise(pl.lit("many"))), **COLUMNS)  # fmt: skip
    assert safari.federate(read, server=safari.read(SERVER, **COLUMNS)).client_names == ("many", "one")


def test_the_column_of_clients_is_used_unless_a_word_says_otherwise(tmp_path):
    frame = TRAIN.rename({"hospital": "client"})
    server = safari.read(SERVER, **COLUMNS)
    assert safari.federate(safari.read(frame, "diagnosis"), server=server).client_names == CLIENTS
    numbered = frame.with_columns(client=pl.col("client").str.len_chars())
    ignored = safari.read(numbered, "diagnosis", client=False)
    assert ignored.client is None
    assert ignored.features == (*FEATURES, "client")
    frame.write_csv(tmp_path / "patients.csv")
    assert names_clients(tmp_path / "patients.csv", None)
    assert not names_clients(tmp_path / "patients.csv", False)


def image_folder(folder: Path, clients=()):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for holder in clients or ("",):
        for kind in ("cat", "dog"):
            (folder / holder / kind).mkdir(parents=True)
            for number in range(6):
                pixels = rng.integers(0, 256, (5, 4, 3), dtype=np.uint8)
                image.fromarray(pixels).save(folder / holder / kind / f"{number}.png")
    return folder


def test_a_folder_of_images_has_one_folder_a_class(tmp_path):
    read = safari.read(image_folder(tmp_path / "pets"))
    assert read.x.shape == (12, 5, 4, 3)
    assert read.x.dtype == np.uint8
    assert read.labels == ("cat", "dog")
    federation = safari.federate(read, safari.IID(clients=2), safari.ServerSet(2))
    assert float(federation.dataset.scale) == pytest.approx(1 / 255)


def test_folders_of_images_may_be_clients(tmp_path):
    read = safari.read(image_folder(tmp_path / "pets", clients=("ann", "bob")))
    assert read.clients == ("ann", "bob")
    assert np.bincount(read.client).tolist() == [12, 12]


def test_images_of_hugging_face_and_torch_are_those_of_the_folder(tmp_path):
    datasets, torch = pytest.importorskip("datasets"), pytest.importorskip("torch")
    read = safari.read(image_folder(tmp_path / "pets"))
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    )
    files = sorted(str(path) for path in (tmp_path / "pets").rglob("*.png"))
    labels = [int("dog" in Path(file).parent.name) for file in files]
    theirs = safari.read(datasets.Dataset.from_dict({"image": files, "label": labels}, features=features))
    np.testing.assert_array_equal(theirs.x, read.x)
    assert theirs.labels == read.labels

    class Pets(torch.utils.data.Dataset):
        def __len__(self):
            return len(read)

        def __getitem__(self, number):
            return torch.from_numpy(read.x[number]).permute(2, 0, 1), int(read.y[number])

    np.testing.assert_array_equal(safari.read(Pets()).x, read.x)


def test_cells_of_a_sweep_are_named_by_what_their_files_hold(tmp_path):
    from safari.experiment.sweep import make_cell

    def key(folder, server):
        folder.mkdir()
        TRAIN.write_csv(folder / "patients.csv")
        server.write_csv(folder / "centre.csv")
        data = {"source": str(folder / "patients.csv"), **COLUMNS, "server": str(folder / "centre.csv")}
        return make_cell({"data": data}, {}).key

    first = key(tmp_path / "one", SERVER)
    assert key(tmp_path / "two", SERVER) == first
    assert key(tmp_path / "three", SERVER[:30]) != first


def test_paths_in_a_spec_are_relative_to_its_file(tmp_path):
    from safari.experiment import load_spec

    TRAIN.write_csv(tmp_path / "patients.csv")
    SERVER.write_csv(tmp_path / "centre.csv")
    (tmp_path / "own.toml").write_text(
        '[data]\nsource = "patients.csv"\nlabel = "diagnosis"\nclient = "hospital"\nserver = "centre.csv"\n'
    )
    spec = load_spec(tmp_path / "own.toml")
    assert spec.tables["data"]["source"] == str(tmp_path / "patients.csv")
    assert spec.tables["data"]["partition"] == {"name": "column"}
    assert spec.federation().client_names == CLIENTS


def test_whole_numbers_with_a_point_are_the_same_labels(tmp_path):
    """pandas writes 1 as 1.0 in a column that had gaps once."""
    frame = TRAIN.with_columns(
        diagnosis=pl.col("diagnosis").replace_strict(dict(zip(CLASSES, "123", strict=True)))
    )
    frame.write_csv(tmp_path / "whole.csv")
    frame.with_columns(pl.col("diagnosis") + ".0").write_csv(tmp_path / "point.csv")
    whole, point = (safari.read(tmp_path / f"{name}.csv", **COLUMNS) for name in ("whole", "point"))
    assert whole.labels == point.labels == ("1", "2", "3")
    np.testing.assert_array_equal(whole.y, point.y)


def test_columns_without_any_value_are_named_where_they_are_read():
    frame = TRAIN.with_columns(age=pl.lit("N/A"), pressure=pl.lit(None))
    with pytest.warns(
        InputWarning, match="^the frame: columns age, pressure have no value in any of its 240 rows"
    ):
        safari.read(frame, **COLUMNS, missing="mean")
    with pytest.warns(InputWarning, match="^the arrays: column 1 has no value in any of its 2 rows"):
        safari.read(np.array([[1.0, np.nan], [np.nan, np.nan]]), np.array([0, 1]), missing="mean")


def test_a_text_is_no_missing_value():
    frame = TRAIN.with_columns(age=pl.lit("unknown"))
    with pytest.raises(safari.InputError, match='column age, row 1 holds the text "unknown"'):
        safari.read(frame, **COLUMNS, missing="mean")


def labs(folder):
    """A folder with a file a lab, none of which says whose it is."""
    by_folder(TRAIN, folder, "labs")
    return folder / "labs"


def test_a_test_file_names_the_clients_that_a_folder_has_files_of(tmp_path):
    TEST.write_csv(tmp_path / "test.csv")
    SERVER.drop("hospital").write_csv(tmp_path / "centre.csv")
    train = safari.read(labs(tmp_path), **COLUMNS)
    assert train.clients == CLIENTS
    files = {"server": tmp_path / "centre.csv", "test": tmp_path / "test.csv"}
    federation = safari.federate(train, **files)
    assert trained(federation).metrics.clients.clients == CLIENTS
    left_out = safari.File(labs_path := str(tmp_path / "labs"), label="diagnosis", drop=("hospital",))
    assert safari.federate(left_out, **files).dataset.features == FEATURES
    with pytest.raises(
        safari.InputError, match='has column hospital, which labs lacks; write client = "hospital"'
    ):
        safari.federate(safari.read(labs_path, label="diagnosis"), **files)


def test_labels_and_gaps_of_a_named_file_say_what_to_write(tmp_path):
    x, y, _ = arrays(TRAIN)
    gaps = SERVER.drop("hospital").with_columns(age=pl.when(pl.int_range(pl.len()) != 4).then("age"))
    gaps.write_csv(tmp_path / "centre.csv")
    train = safari.read(x, y, features=FEATURES)
    with pytest.raises(
        safari.InputError, match=r'by itself: server = safari.read\(".*centre.csv", label="COLUMN"\)'
    ):
        safari.federate(train, server=tmp_path / "centre.csv")
    server = safari.read(tmp_path / "centre.csv", "diagnosis", missing="mean")
    with pytest.raises(
        safari.InputError, match=r"^server = centre.csv: column age, row 5 has no value; read the arrays"
    ):
        safari.federate(train, server=server)
    with pytest.raises(
        safari.InputError, match=r"^x = nan in sample 1, feature 0: every feature must be finite; NaN"
    ):
        safari.read(np.array([[1.0], [np.nan]]), np.array([0, 1]))


@pytest.mark.parametrize("known", ["train", "server"])
def test_a_test_set_that_is_known_from_training_is_named(tmp_path, known):
    files = {"train": TRAIN, "server": SERVER}
    for name, frame in files.items():
        frame.write_csv(tmp_path / f"{name}.csv")
    files[known].select(reversed(TRAIN.columns)).write_csv(tmp_path / "test.csv")
    train = safari.read(tmp_path / "train.csv", **COLUMNS)
    said = f"test = test.csv: holds the samples of {known}.csv"
    with pytest.warns(InputWarning, match=said):
        safari.federate(train, server=tmp_path / "server.csv", test=tmp_path / "test.csv")


def test_a_class_that_no_score_shows_is_named():
    slip = (
        pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("Sepsis")).otherwise("diagnosis").alias("diagnosis")
    )
    train = safari.read(TRAIN.with_columns(slip), **COLUMNS)
    said = "class Sepsis has 1 sample, none at the server and none in the test set, .* meant to be sepsis?"
    with pytest.warns(InputWarning, match=said):
        safari.federate(train, server=safari.read(SERVER, **COLUMNS), test=safari.read(TEST, **COLUMNS))
