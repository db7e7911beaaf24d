"""Pairs of a max parallelism and a parallelism, for what has to hold at any."""

from __future__ import annotations

MAX_PARALLELISMS = [1, 2, 3, 7, 100, 127, 128, 129, 720, 1000, 1024, 4096, 32767, 32768]
PARALLELISMS = [1, 2, 3, 4, 5, 7, 8, 15, 16, 21, 31, 32, 64, 100, 127, 128, 200, 255, 256, 333]
PARALLELISMS += [500, 512, 720, 1000, 1023, 1024]
GRID = [(mp, p) for mp in MAX_PARALLELISMS for p in PARALLELISMS if p <= mp]
