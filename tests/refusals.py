"""How bad input is refused: in one line."""

import pytest

import safari


def assert_refused(make, key, allowed):
    """One line that names the key first and says what is allowed."""
    with pytest.raises(safari.InputError) as caught:
        make()
    message = str(caught.value)
    assert message.startswith(key)
    assert allowed in message
    assert "\n" not in message
