"""The family of sources: where the samples come from."""

from abc import abstractmethod

from safari.data.dataset import Dataset
from safari.registry import Noun


class Source(Noun):
    """Where samples and labels come from.

    Subclass it in a file of your own, write `load`, and pass an instance to `safari.federate`.
    Fields are the settings of the source; `__check_init__` may refuse their values.

    Examples:
        >>> import numpy as np
        >>> import safari
        >>> class Parity(safari.Source):
        ...     samples: int = 200
        ...     def load(self):
        ...         x = np.random.default_rng(0).integers(0, 2, (self.samples, 8)).astype(np.uint8)
        ...         y = x.sum(axis=1) % 2
        ...         return safari.Dataset(x[50:], y[50:], x[:50], y[:50], scale=1.0, name="parity")
        >>> safari.federate(Parity(), safari.IID(clients=5), safari.ServerSet(20)).dataset.classes
        2
    """

    @abstractmethod
    def load(self) -> Dataset:
        """Read the data set.

        Returns:
            The data set. It should be the same every time: what is drawn at random belongs to
            the partition or to the server's samples, which have a seed.

        Raises:
            InputError: if it is not there or cannot be read.
        """
