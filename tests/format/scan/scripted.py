"""A verb that follows logs, run by a script: what is done to the files, and how much is then shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from format.scan.follow import CaughtUp, FollowTerms, Stopping

#: What is done to the files, and how many items are shown after that.
Step = tuple[Callable[[], object], int]
_MOST_S = 120


def shown_by(follow: Callable[[FollowTerms], Iterable[Any]], steps: list[Step], *, first: int = 0) -> list[Any]:
    """The items of a verb that follows, while the steps are run one by one; ``first`` of them come before the steps."""
    shown: list[Any] = []
    left, expected = iter(steps), first
    until = time.monotonic() + _MOST_S
    is_over = False
    stopping = Stopping(lambda: is_over or time.monotonic() > until)
    for item in follow(FollowTerms(stopping=stopping)):
        if not isinstance(item, CaughtUp):
            shown.append(item)
        elif len(shown) >= expected:
            step = next(left, None)
            is_over = step is None
            if step is not None:
                expected += step[1]
                step[0]()
    assert is_over, f"only {shown} came"
    return shown
