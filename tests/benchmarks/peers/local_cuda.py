"""A cold LocalCUDACluster as a peer: each round is a fresh process with the stub NVML.

Used by `claim_latency.py`. It needs the stub libraries: without them dask-cuda finds no NVML.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_ROUND_WITHIN_S = 60.0


class LocalCudaFailed(Exception):
    """A round of LocalCUDACluster failed: counted, not fatal."""


def first_result(environment: Mapping[str, str], workers: int = 1) -> dict[str, float]:
    """Build a cluster in a fresh process, get a result, close it.

    Raises:
        LocalCudaFailed: With its last words.
    """
    command = [sys.executable, Path(__file__).with_name("local_cuda_rounds.py"), str(workers)]
    ran = subprocess.run(
        command,
        env=os.environ | dict(environment),
        capture_output=True,
        text=True,
        timeout=_ROUND_WITHIN_S,
        check=False,
    )
    if ran.returncode:
        last = (ran.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise LocalCudaFailed(f"LocalCUDACluster: {last}")
    answer: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return answer
