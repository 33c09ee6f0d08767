"""The run's seed and its number of rounds, read once so that every scenario has the same.

`GPUPOOL_E2E_SEED` repeats a run; `GPUPOOL_E2E_ROUNDS` repeats the seeded scenarios more often.
Processes that share one run of the tests have to name the same cases, so without a seed it is
made of the run's own id.
"""

import os
import random

_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID")
SEED = int(os.environ.get("GPUPOOL_E2E_SEED") or random.Random(_RUN).randrange(2**32))
ROUNDS = int(os.environ.get("GPUPOOL_E2E_ROUNDS") or 1)
