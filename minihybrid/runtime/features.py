"""`mx.runtime`: the features of this installation, under the names of MXNet's builds.

Defines: `Features`, `feature_list`. Features that make no sense here are disabled.
"""

from dataclasses import dataclass

from minihybrid.core.context import num_gpus
from minihybrid.core.hooks import own_names

NAMES = (
    "CUDA CUDNN NCCL TENSORRT CPU_SSE CPU_AVX CPU_AVX2 OPENMP F16C BLAS_OPEN LAPACK "
    "MKLDNN OPENCV DIST_KVSTORE INT64_TENSOR_SIZE SIGNAL_HANDLER DEBUG"
)


@dataclass(frozen=True)
class Feature:
    """A feature and whether it is enabled."""

    name: str
    enabled: bool

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


class Features(dict):
    """Features by name.

    >>> Features().is_enabled("INT64_TENSOR_SIZE")
    True
    """

    def __init__(self) -> None:
        here = {"INT64_TENSOR_SIZE"} | ({"CUDA"} if num_gpus() else set())
        super().__init__({name: Feature(name, name in here) for name in NAMES.split()})

    def __repr__(self) -> str:
        return repr(list(self.values()))

    def is_enabled(self, feature_name: str) -> bool:
        """Return whether a feature is enabled.

        Raises:  RuntimeError for an unknown name, as MXNet does.
        """
        name = str(feature_name).upper()
        if name not in self:
            raise RuntimeError(f"Features: '{name:.60}' is unknown; there are {', '.join(self)}")
        return self[name].enabled


def feature_list() -> list[Feature]:
    """Return all features as a list."""
    return list(Features().values())


__dir__ = own_names(globals())
