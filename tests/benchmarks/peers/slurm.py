"""How fast Slurm decides, on emulated nodes: a controller of its own, in a folder of its own.

Used by `scheduling_pass.py`. There is no slurmd: nodes are declared, put down and set idle, and
jobs are allocations alone (`salloc --no-shell`), which need no node to answer. Timed are what a
user waits for, from `salloc` to its grant, and what the controller says that it took of it. All
that is started here is ended here.
"""

import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PACKAGES = "slurmctld slurm-client"
_CONFIGURATION = """\
ClusterName=benchmark
SlurmctldHost=localhost
SlurmUser={user}
AuthType=auth/none
CredType=cred/none
SlurmctldPort={port}
SlurmdPort={node_port}
StateSaveLocation={folder}
SlurmdSpoolDir={folder}
SlurmctldPidFile={folder}/pid
SlurmctldLogFile={folder}/log
SlurmctldDebug=info
SlurmdTimeout=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName=n[1-{nodes}] NodeAddr=127.0.0.1 CPUs=64 RealMemory=1000 Gres=gpu:{each} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
_BATCH = 10
"""After so many jobs all nodes are set idle again: the controller finds that none answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmTimes:
    """What was measured, in seconds.

    Attributes:
        latencies_s: From `salloc` to its grant, its own start included.
        decisions_s: Of that, what the controller took to decide.
    """

    nodes: int
    devices: int
    latencies_s: Sequence[float]
    decisions_s: Sequence[float]

    @property
    def decisions_per_s(self) -> float:
        """How many it decides in a second, one after the other."""
        return 1 / statistics.mean(self.decisions_s)


def is_there() -> bool:
    """Whether Slurm is installed."""
    return all(map(shutil.which, ("slurmctld", "salloc", "scontrol")))


def measure(*, nodes: int, each: int, jobs: int) -> SlurmTimes:
    """Hold four fifths of the nodes, then let jobs of one device come one by one.

    Raises:
        RuntimeError: The controller does not start, or grants nothing.
    """
    with (
        tempfile.TemporaryDirectory(prefix="slurm-") as name,
        _controller(Path(name), nodes, each) as environment,
    ):
        _all_idle(environment)
        _salloc(environment, f"--nodes={nodes * 4 // 5}", "--exclusive")
        latencies_s = []
        for number in range(jobs):
            if number % _BATCH == 0:
                _all_idle(environment)
            started_s = time.perf_counter()
            _salloc(environment, "--nodes=1", "--gpus=1", "--cpus-per-task=1")
            latencies_s.append(time.perf_counter() - started_s)
        log = (Path(name) / "log").read_text(encoding="utf-8")
    decided = re.findall(r"_slurm_rpc_allocate_resources JobId=\d+ NodeList=\S+ usec=(\d+)", log)
    return SlurmTimes(
        nodes=nodes,
        devices=nodes * each,
        latencies_s=latencies_s,
        decisions_s=[int(usec) / 1e6 for usec in decided[1:]],
    )


@contextmanager
def _controller(folder: Path, nodes: int, each: int) -> Iterator[dict[str, str]]:
    configuration = folder / "slurm.conf"
    port = 20_000 + os.getpid() % 10_000 * 2
    user = os.environ.get("USER") or "root"
    configuration.write_text(
        _CONFIGURATION.format(
            folder=folder, nodes=nodes, each=each, user=user, port=port, node_port=port + 1
        ),
        encoding="utf-8",
    )
    (folder / "gres.conf").write_text(f"NodeName=n[1-{nodes}] Name=gpu Count={each}\n")
    environment = {**os.environ, "SLURM_CONF": str(configuration)}
    with (folder / "out").open("w") as out:
        controller = subprocess.Popen(
            ["slurmctld", "-D", "-f", str(configuration)],
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(environment, controller)
        yield environment
    finally:
        controller.terminate()
        try:
            controller.wait(20)
        except subprocess.TimeoutExpired:
            controller.kill()
            controller.wait()


def _wait_for(environment: dict[str, str], controller: "subprocess.Popen[bytes]") -> None:
    for _ in range(300):
        if controller.poll() is not None:
            raise RuntimeError("slurmctld ended at once")
        if subprocess.run(
            ["scontrol", "ping"], env=environment, capture_output=True, check=False
        ).stdout.endswith(b"UP\n"):
            return
        time.sleep(0.1)
    raise RuntimeError("slurmctld does not answer")


def _all_idle(environment: dict[str, str]) -> None:
    """Set every node that holds nothing idle, as if it had answered."""
    states = subprocess.run(
        ["sinfo", "-h", "-t", "unknown,no_respond", "-o", "%N"],
        env=environment,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.strip()
    if states:
        for state in ("down", "idle"):
            subprocess.run(
                ["scontrol", "update", f"nodename={states}", f"state={state}", "reason=emulated"],
                env=environment,
                capture_output=True,
                check=True,
            )


def _salloc(environment: dict[str, str], *terms: str) -> None:
    done = subprocess.run(
        ["salloc", "--no-shell", "--quiet", "--immediate=30", *terms],
        env=environment,
        capture_output=True,
        check=False,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"salloc: {done.stderr.strip()}")
