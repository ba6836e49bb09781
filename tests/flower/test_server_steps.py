"""Server steps in PyTorch."""

import numpy as np
import pytest
import torch
from local_grid import LocalGrid
from numpy_app import nodes
from torch.utils.data import DataLoader, TensorDataset

from safari import AdaptiveQ
from safari.errors import InputError
from safari.flower import SafariStrategy, torch_server_step
from safari.flower.arrays import array_record


@pytest.fixture
def samples():
    x = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    return x, (x[:, 0] > 0).long()


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Linear(4, 2)
    )


def arrays_of(net):
    return {name: value.detach().numpy().copy() for name, value in net.state_dict().items()}


def test_a_step_is_that_of_torch(samples):
    x, y = samples
    loader = DataLoader(TensorDataset(x, y), batch_size=10)
    made = torch_server_step(model(), loader, lr=0.2, steps=6)(arrays_of(model()), 1)
    net = model().train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
    for number in range(6):
        part = slice(10 * (number % 4), 10 * (number % 4) + 10)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x[part]), y[part]).backward()
        optimizer.step()
    for name, array in arrays_of(net).items():
        assert made[name].dtype == array.dtype
        assert made[name].shape == array.shape
        np.testing.assert_allclose(made[name], array, atol=1e-6)


def test_shuffles_follow_the_round(samples):
    def step():
        loader = DataLoader(TensorDataset(*samples), batch_size=10, shuffle=True)
        return torch_server_step(model(), loader, steps=3, seed=5)

    start = arrays_of(model())
    once, again, other = step()(start, 4), step()(start, 4), step()(start, 5)
    np.testing.assert_array_equal(once["0.weight"], again["0.weight"])
    assert not np.array_equal(once["0.weight"], other["0.weight"])


def test_batches_may_be_dicts(samples):
    x, y = samples
    pairs = [(x[:20], y[:20])]
    dicts = [{"image": x[:20], "label": y[:20]}]
    start = arrays_of(model())
    one, two = (torch_server_step(model(), loader, steps=2)(start, 1) for loader in (pairs, dicts))
    np.testing.assert_array_equal(one["0.weight"], two["0.weight"])
    with pytest.raises(InputError, match="label"):
        torch_server_step(model(), [{"image": x, "colour": y}])(start, 1)
    with pytest.raises(InputError, match="no batches"):
        torch_server_step(model(), [])(start, 1)


def test_an_adaptive_q_learns_from_torch(samples):
    loader = DataLoader(TensorDataset(*samples), batch_size=20, shuffle=True)
    step = torch_server_step(model(), loader, steps=2)
    start = arrays_of(model())
    a, b = step.halves(start, 1)
    assert set(a) == set(start)
    assert np.abs(a["0.weight"]).max() > 0
    assert not np.array_equal(a["0.weight"], b["0.weight"])

    def app(message, context):
        from flwr.app import Message, MetricRecord, RecordDict

        if message.metadata.message_type.startswith("query"):
            raise ValueError("No query function registered with name 'safari_name'")
        content = {"arrays": message.content["arrays"], "metrics": MetricRecord({"num-examples": 3})}
        return Message(RecordDict(content), reply_to=message)

    made = SafariStrategy(AdaptiveQ(rule="B"), step, fleet=4, client_path=0.2, start_deadline=0.0)
    made.start(LocalGrid(app, nodes(4)), array_record(start), num_rounds=8)
    q = made.journal.history()["q"].to_list()
    assert q[0] == 0.0
    assert q[1] == 1.0
    assert len(set(q)) > 2
    with pytest.raises(InputError, match="client_path"):
        SafariStrategy(AdaptiveQ(), step)
    with pytest.raises(InputError, match="server_step"):
        SafariStrategy(AdaptiveQ(), lambda arrays, round: arrays, client_path=0.1)
