"""A dask-gateway client: a new cluster with one worker and its first result, whenever asked.

Runs in dask-gateway's own environment, started by `gateway.py`. Each line on standard input is one
round; each answer is one line of JSON. Imports are done before the first round.
"""

import json
import sys
import time

from dask_gateway import Gateway
from dask_gateway.auth import BasicAuth


def one_round(gateway: Gateway) -> dict[str, float]:
    started = time.perf_counter()
    cluster = gateway.new_cluster()
    created = time.perf_counter()
    try:
        cluster.scale(1)
        with cluster.get_client(set_as_default=False) as client:
            connected = time.perf_counter()
            assert client.submit(lambda x: x + 1, 41, pure=False).result(timeout=60) == 42
            ready = time.perf_counter()
    finally:
        cluster.shutdown()
    return {
        "new_cluster_s": created - started,
        "connected_s": connected - started,
        "first_result_s": ready - started,
    }


def main() -> None:
    address, user = sys.argv[1:]
    with Gateway(address, auth=BasicAuth(user)) as gateway:
        print(json.dumps({"ready": True}), flush=True)
        for _ in sys.stdin:
            try:
                answer: dict[str, object] = dict(one_round(gateway))
            except Exception as error:  # noqa: BLE001 - a peer's failure is a figure, not our end
                answer = {"failed": f"{type(error).__name__}: {error}"[:300]}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
