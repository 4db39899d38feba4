"""Random numbers that belong to a request: draw i depends on (seed, i) and on nothing else."""

import numpy as np

# Constants of SplitMix64 (Steele, Lea, Flood 2014): the golden-ratio increment and the mixer.
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)

# 48 bits are exact in a float64, and (1 - 2**-48) * total still rounds below total.
_BITS = 48


def uniforms(seeds: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Return one number in [0, 1) per row, a pure function of its seed and draw number.

    Args:
        seeds: uint64, one per row.
        draws: Which draw of the row's stream this is, from 0.
    """
    stream = _mix(seeds.astype(np.uint64, copy=False) + _INCREMENT)
    mixed = _mix(stream + (draws.astype(np.uint64) + np.uint64(1)) * _INCREMENT)
    return (mixed >> np.uint64(64 - _BITS)).astype(np.float64) * 2.0**-_BITS


def _mix(values: np.ndarray) -> np.ndarray:
    """Scramble 64-bit values so that neighbouring inputs have unrelated outputs."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))
