"""Workers that nothing plays but their own tests: not the demo, not the recording of permissions, not the counts of cost, not the benchmark.

`tahan new worker` adds a line. Whoever gives a worker its situation in the demo takes it out, and the tests that fail then say
what to record.
"""

from __future__ import annotations

UNPLAYED: frozenset[str] = frozenset(())
