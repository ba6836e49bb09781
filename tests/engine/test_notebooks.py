"""What notebooks show: federations, results, pictures, and how far a training is."""

import base64

import numpy as np
import pytest

import safari

CELLS = (
    "import safari\nfederation = safari.federate('digits', client_test=0.2)\nfederation",
    "result = safari.train(federation, participation=safari.Participation(excluded=[0]), rounds=20)",
    "result",
    "result.plot()",
    "result.metrics",
)


def test_a_federation_is_told_in_one_line(digits):
    assert repr(digits) == (
        "Federation(digits: 10 clients with 120 samples each, the server 50, 355 test samples, 10 classes)"
    )
    skewed = safari.federate("digits", safari.Dirichlet(clients=5, size_skew=0.5), validation=0.2)
    assert repr(skewed).startswith(
        f"Federation(digits: 5 clients with up to {skewed.largest} samples (median "
    )
    assert "the server 80 and 20 held out" in repr(skewed)
    assert (
        repr(digits.dataset)
        == "Dataset(digits: 1442 training and 355 test samples of shape 8x8x1, 10 classes)"
    )


def test_the_table_of_a_federation_says_who_holds_what(digits):
    table = digits.table()
    assert table["held by"].to_list() == ["the server", "test set", *map(str, range(10))]
    assert table["samples"].to_list() == [50, 355, *[120] * 10]
    counts = table.select(digits.dataset.labels).to_numpy()
    np.testing.assert_array_equal(counts.sum(axis=1), table["samples"])
    own = np.asarray(digits.dataset.y)[digits.held_by(3)]
    np.testing.assert_array_equal(counts[5], np.bincount(own, minlength=10))


def test_html_is_escaped(digits):
    labels = [f"<b>{name}</b>" for name in digits.dataset.labels]
    x, y = np.asarray(digits.dataset.x), np.asarray(digits.dataset.y)
    html = safari.federate(safari.Dataset(x, y, x, y, labels=labels))._repr_html_()
    assert "&lt;b&gt;3&lt;/b&gt;" in html
    assert "<b>" not in html


@pytest.mark.parametrize(("wanted", "shown"), [(True, True), (False, False), (None, False)])
def test_a_bar_is_shown_if_asked_for_or_in_a_notebook(digits, capsys, wanted, shown):
    safari.train(digits, rounds=3, progress=wanted)
    written = capsys.readouterr().err
    assert ("3/3" in written) == shown
    assert ("accuracy" in written) == shown


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """The cells, run by Jupyter's own kernel; what each has shown, by kind."""
    client = pytest.importorskip("nbclient", reason="make test-extras runs it")
    from nbformat.v4 import new_code_cell, new_notebook

    book = new_notebook(cells=[new_code_cell(cell) for cell in CELLS])
    folder = str(tmp_path_factory.mktemp("notebook"))
    client.NotebookClient(book, timeout=120, resources={"metadata": {"path": folder}}).execute()
    return [cell.outputs for cell in book.cells]


def data(outputs):
    [found] = [output.data for output in outputs if output.output_type == "execute_result"]
    return found


def test_a_notebook_shows_a_federation_and_a_result_as_tables(notebook):
    federation, result, metrics = (data(notebook[place])["text/html"] for place in (0, 2, 4))
    assert "10 clients with 104 samples each" in federation
    assert "<th>held by</th>" in federation
    assert "1 of 10 clients never takes part" in result
    for shown in (result, metrics):
        assert "<th>recall</th>" in shown
        assert "<th>takes part</th>" in shown


def test_a_notebook_shows_how_far_a_training_is(notebook):
    text = "".join(output.text for output in notebook[1] if output.output_type == "stream")
    assert "20/20" in text
    assert "accuracy" in text


def test_a_notebook_shows_a_picture(notebook):
    assert base64.b64decode(data(notebook[3])["image/png"]).startswith(b"\x89PNG")
