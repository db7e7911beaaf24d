"""The retention of state: that of idle keys, and the TTL of values."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from keygroups._checks import check_choice, show
from keygroups.errors import InvalidTypeError, InvalidValueError

UPDATE_TYPES = ("OnCreateAndWrite", "OnReadAndWrite")
_MILLISECOND = dt.timedelta(milliseconds=1)
_FIVE_MINUTES = 5 * 60 * 1000


@dataclass(frozen=True)
class Retention:
    """The milliseconds of an idle retention or of a TTL; without either state stays for ever."""

    idle: tuple[int, int] | None
    ttl: int | None
    touch: bool

    @property
    def forgets(self) -> bool:
        """Whether any state is ever forgotten."""
        return self.idle is not None or self.ttl is not None


def check_retention(idle_retention: object, state_ttl: object, update_type: str) -> Retention:
    """Return the Retention, or raise for one that Flink refuses or would not keep."""
    check_choice("update_type", update_type, UPDATE_TYPES)
    touch = update_type == "OnReadAndWrite"
    if touch and state_ttl is None:
        raise InvalidValueError(f"update_type is of a state_ttl, got {update_type!r} without one")
    if idle_retention is None:
        ttl = None if state_ttl is None else _milliseconds("state_ttl", state_ttl)
        if ttl is not None and ttl < 1:
            raise InvalidValueError(f"state_ttl must be above 0, got {show(state_ttl)}")
        return Retention(None, ttl, touch)
    if state_ttl is not None:
        raise InvalidValueError(
            "idle_retention and state_ttl must not be given both: no Flink has both, 1.11 and "
            "before the first, 1.12 and after the second"
        )
    if not isinstance(idle_retention, tuple) or len(idle_retention) != 2:
        raise InvalidTypeError(
            f"idle_retention must be a tuple (min, max), got {show(idle_retention)}"
        )
    low, high = (_milliseconds("idle_retention", bound) for bound in idle_retention)
    if low < 2:
        raise InvalidValueError(
            f"idle_retention must have a min above 1 ms, or Flink never cleans up, got "
            f"{show(idle_retention[0])}"
        )
    if high - low < _FIVE_MINUTES:
        raise InvalidValueError(
            "idle_retention must have a max at least 5 minutes above its min, got "
            f"{show(idle_retention[0])} and {show(idle_retention[1])}"
        )
    return Retention((low, high), None, touch)


def _milliseconds(name: str, duration: object) -> int:
    if not isinstance(duration, dt.timedelta):
        raise InvalidTypeError(f"{name} must be a datetime.timedelta, got {show(duration)}")
    milliseconds, rest = divmod(duration, _MILLISECOND)
    if rest:
        raise InvalidValueError(f"{name} must be whole milliseconds, got {show(duration)}")
    return milliseconds
