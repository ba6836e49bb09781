"""The names of everything that a spec can name, and names that are imported when first asked for.

A new method is a file of its own and one line here. This module imports nothing, so that a process
that needs little starts fast.
"""

from collections.abc import Callable
from importlib import import_module

ALGORITHMS = {
    "safari": "algorithms.safari:Safari",
    "server-only": "algorithms.server_only:ServerOnly",
    "then": "algorithms.then:Then",
    "beside": "algorithms.beside:Beside",
    "stages": "algorithms.stages:Stages",
    "fedavg": "algorithms.fedavg:FedAvg",
    "fedprox": "algorithms.fedprox:FedProx",
    "fedadam": "algorithms.fedopt:FedAdam",
    "fedopt": "algorithms.fedopt:FedOpt",
    "scaffold": "algorithms.scaffold:SCAFFOLD",
    "fednova": "algorithms.fednova:FedNova",
    "warm-start": "algorithms.warm_start:WarmStart",
    "fine-tune": "algorithms.fine_tune:FineTune",
    "hybrid-fl": "algorithms.hybrid_fl:HybridFL",
    "clg-sgd": "algorithms.clg_sgd:CLGSGD",
    "fedavgm": "algorithms.fedavgm:FedAvgM",
    "fedadagrad": "algorithms.fedadagrad:FedAdagrad",
    "fedyogi": "algorithms.fedyogi:FedYogi",
    "feddyn": "algorithms.feddyn:FedDyn",
    "fedexp": "algorithms.fedexp:FedExP",
    "mifa": "algorithms.mifa:MIFA",
    "fedvarp": "algorithms.fedvarp:FedVARP",
    "fedstale": "algorithms.fedstale:FedStale",
    "fedau": "algorithms.fedau:FedAU",
    "known-p": "algorithms.known_p:KnownP",
    "f3ast": "algorithms.f3ast:F3AST",
    "fedawe": "algorithms.fedawe:FedAWE",
    "amplify": "algorithms.amplify:Amplify",
    "private": "algorithms.private:Private",
    "sgd": "algorithms.server_sgd:ServerSGD",
    "data-sharing": "algorithms.data_sharing:DataSharing",
    "fltrust": "algorithms.fltrust:FLTrust",
    "corrected": "algorithms.fedclg_c:Corrected",
    "fedclg-c": "algorithms.fedclg_c:FedCLGC",
    "corrected-at-server": "algorithms.fedclg_s:CorrectedAtServer",
    "fedclg-s": "algorithms.fedclg_s:FedCLGS",
    "feddu": "algorithms.feddu:FedDU",
    "fedlaw": "algorithms.fedlaw:FedLAW",
    "mixed-parallel": "algorithms.mixed:MixedParallel",
    "mixed-one-way": "algorithms.mixed:MixedOneWay",
    "mixed-two-way": "algorithms.mixed:MixedTwoWay",
}
Q_RULES = {
    "adaptive": "algorithms.adaptive_q:AdaptiveQ",
}
PARTITIONS = {
    "classes": "data.partitions.classes:Classes",
    "dirichlet": "data.partitions.dirichlet:Dirichlet",
    "iid": "data.partitions.iid:IID",
    "column": "data.partitions.by_column:ByColumn",
}
SOURCES = {
    "digits": "data.sources.digits:Digits",
    "mnist": "data.sources.mnist:MNIST",
    "fashion-mnist": "data.sources.fashion_mnist:FashionMNIST",
    "cifar10": "data.sources.cifar10:CIFAR10",
    "file": "data.sources.file:File",
    "nodes": "data.sources.nodes:Nodes",
}
AVAILABILITIES = {
    "always": "participation.availability.always:Always",
    "bernoulli": "participation.availability.bernoulli:Bernoulli",
    "cyclic": "participation.availability.cyclic:Cyclic",
    "diurnal": "participation.availability.diurnal:Diurnal",
    "long-tail": "participation.availability.long_tail:LongTail",
    "markov": "participation.availability.markov:Markov",
    "trace": "participation.availability.trace:Trace",
}
MODELS = {
    "logistic": "models.logistic:Logistic",
    "mlp": "models.mlp:MLP",
    "cnn": "models.cnn:CNN",
}
SCHEDULES = {
    "cosine": "algorithms.schedules:Cosine",
    "linear": "algorithms.schedules:Linear",
    "exponential": "algorithms.schedules:Exponential",
}

BASES = {
    "algorithm": "algorithms.base:Algorithm",
    "q": "algorithms.adaptive_q:AdaptiveQ",
    "availability": "participation.availability.base:Availability",
    "partition": "data.partitions.base:Partition",
    "source": "data.sources.base:Source",
    "model": "models.base:Model",
    "schedule": "algorithms.schedule:Schedule",
}


def public_classes() -> dict[str, tuple[str, ...]]:
    """The classes listed here, by the module that holds them."""
    found: dict[str, tuple[str, ...]] = {}
    for table in (BASES, ALGORITHMS, PARTITIONS, SOURCES, AVAILABILITIES, MODELS, SCHEDULES):
        for place in table.values():
            module, _, name = place.partition(":")
            found[module] = tuple(dict.fromkeys((*found.get(module, ()), name)))
    return found


def lazily(package: str, modules: dict[str, tuple[str, ...]]) -> Callable[[str], object]:
    """The `__getattr__` of a package whose `modules` hold these names."""
    place = {name: module for module, names in modules.items() for name in names}

    def __getattr__(name: str) -> object:  # noqa: N807
        if name not in place:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        path = f"{package}.{place[name]}"
        try:
            return getattr(import_module(path), name)
        except ModuleNotFoundError as error:
            if not f"{path}.".startswith(f"{error.name}."):  # a library that is not there
                raise
            hint = "is not in safari-fl-client; the whole of safari has it: pip install safari-fl"
            raise ImportError(f"{package}.{name} {hint}") from None

    return __getattr__
