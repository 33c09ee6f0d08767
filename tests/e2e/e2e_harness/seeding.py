"""The run's seed and its number of rounds, read once so that every scenario has the same.

`GPUPOOL_E2E_SEED` repeats a run; `GPUPOOL_E2E_ROUNDS` repeats the seeded scenarios more often.
"""

import os
import random

SEED = int(os.environ.get("GPUPOOL_E2E_SEED") or random.SystemRandom().randrange(2**32))
ROUNDS = int(os.environ.get("GPUPOOL_E2E_ROUNDS") or 1)
