"""verify of every record of one log without the imports: seconds, as aiokafka_reader prints them.

``python -m tests.benchmarks.own_reader LOG JOBS``. More is checked here than there: order, timestamps, counts, headers.
"""

from __future__ import annotations

import sys
import time

from format.io.read_policy import keep_freed_memory
from format.node.log_dir import Kind
from format.node.target import Target
from format.verbs.verify.terms import Verification
from format.verbs.verify.verify import verify
from format.verbs.verify.walk import Level

if __name__ == "__main__":
    keep_freed_memory()
    terms = Verification(Level.RECORDS, jobs=int(sys.argv[2]))
    started = time.perf_counter()
    found = list(verify(Target(sys.argv[1], Kind.LOG), terms))
    print(time.perf_counter() - started, terms.coverage.records)
    sys.exit(bool(found))
