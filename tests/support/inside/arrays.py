"""Modules of `keygroups.arrays`, whose ways tests watch."""

from keygroups.arrays import _blocks, _kernels, _scalars, _text, _utf8

__all__ = ["_blocks", "_kernels", "_scalars", "_text", "_utf8"]
