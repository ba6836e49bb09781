"""The family of partitions: which client holds which samples. Host code, NumPy only."""

from abc import abstractmethod

import numpy as np

from safari.data.dataset import Dataset
from safari.registry import Noun


class Partition(Noun):
    """A way to split the samples of a data set among clients.

    Subclass it in a file of your own, write `split`, and pass an instance to
    `safari.federate`, which checks what `split` returns. Fields are the settings of the
    partition; `__check_init__` may refuse their values.

    Examples:
        >>> import numpy as np
        >>> import safari
        >>> class Halves(safari.Partition):
        ...     def split(self, dataset, pool, rng):
        ...         return np.array_split(pool, 2)
        >>> safari.federate("digits", Halves()).size
        2
    """

    @abstractmethod
    def split(self, dataset: Dataset, pool: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        """The sample numbers of every client.

        Args:
            dataset: the data set; `dataset.y` holds the labels, `dataset.classes` says how many classes.
            pool: the sample numbers that clients may hold, shuffled. The server's samples are
                not among them, unless it shares them.
            rng: the random generator to draw from; it follows from the seed of the federation.

        Returns:
            One array of sample numbers for each client, client 0 first. The numbers come from
            `pool`; no sample goes to two clients and no client goes without. Samples may be left over.

        Raises:
            InputError: if the data set does not allow this partition. Name the field that is to blame.
        """
