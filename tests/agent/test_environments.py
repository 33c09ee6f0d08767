"""A host's Python environments: warmed on demand, kept by use, dropped by age."""

import asyncio
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from agent_harness.fake_python import fake_python
from other_python import make_environment, packages_of

from jupyter_gpupool.agent import procfs
from jupyter_gpupool.agent.environments import EnvironmentRules, Environments
from jupyter_gpupool.agent.offered import Offered, Stamp, read_offers
from jupyter_gpupool.agent.zygotes import NOBODY, Identity, Zygotes
from jupyter_gpupool.pool.errors import BadRequest, NotAllowed, NotFound, Unavailable
from jupyter_gpupool.protocol.launch import Launch, Role, Tls

DEADLINE_S = 60.0
KEPT_S = 100.0
DEFAULT = Offered("default", Path(sys.executable))


class Host:
    """Environments on virtual time, and what they told."""

    def __init__(
        self,
        folder: Path,
        *offered: Offered,
        default: Offered = DEFAULT,
        kernels_own: bool = True,
    ) -> None:
        self.folder = folder
        self.now_s = 0.0
        self.told = 0
        self.ended = asyncio.Event()
        rules = EnvironmentRules(
            offered=(default, *offered), kernels_own=kernels_own, kept_s=KEPT_S
        )
        self.environments = Environments(
            rules,
            log_folder=folder,
            package_folder=folder / "package",
            exited=lambda *_: self.ended.set(),
            news=self._note_news,
            now_s=lambda: self.now_s,
        )

    def _note_news(self) -> None:
        self.told += 1

    async def fork(self, environment: Offered, identity: Identity | None = None) -> int:
        """A worker that cannot start: it ends by itself."""
        log = os.open(self.folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        launch = Launch(
            role=Role.WORKER,
            claim_id="claim",
            lease_id="lease",
            name="lease",
            listen="127.0.0.1",
            protocol="nonsense",
            folder=str(self.folder),
            agent_socket=str(self.folder / "agent.sock"),
            tls=Tls(ca="", certificate="", key=""),
        )
        try:
            return await self.environments.fork(
                launch, environment=environment, identity=identity, log_fd=log, lock_fds=()
            )
        finally:
            os.close(log)

    async def until_ended(self) -> None:
        """Wait for a child's end."""
        async with asyncio.timeout(DEADLINE_S):
            await self.ended.wait()

    def report(self, name: str):
        """What the manager would be told of it."""
        return next(each for each in self.environments.reports() if each.name == name)


@pytest.fixture
async def host_of(tmp_path):
    """Makes a host that offers these environments besides its default."""
    hosts: list[Host] = []

    def make(*offered: Offered, **rules) -> Host:
        hosts.append(Host(tmp_path, *offered, **rules))
        return hosts[-1]

    yield make
    for host in hosts:
        await host.environments.close()


@pytest.fixture
def second(tmp_path):
    """An environment with all that workers need, and without our package."""
    return Offered("second", make_environment(tmp_path / "second"))


@pytest.fixture
def quick(tmp_path):
    """A second environment that only answers as one."""
    return Offered("quick", fake_python(tmp_path / "quick" / "bin" / "python"))


async def test_environment_without_our_package_forks_with_the_agents_own(host_of, second):
    """Nobody has to install us anywhere but on the host, and nothing else of ours gets there."""
    host = host_of(second)
    await host.fork(second)
    await host.until_ended()
    assert (host.folder / f"zygote-second-{os.geteuid()}.log").exists()
    assert "nonsense" in (host.folder / "log").read_text()
    assert host.report("second").is_warm
    assert os.listdir(host.folder / "package") == ["jupyter_gpupool"]  # noqa: PTH208 - one name


async def test_environment_is_dropped_when_nobody_used_it_for_long(host_of, quick):
    """Counted from its last process's end; the default stays for ever."""
    host = host_of(quick, default=Offered("default", quick.interpreter))
    await host.environments.warm_default()
    await host.fork(quick)
    await host.until_ended()
    both = host.environments.pids
    host.now_s += KEPT_S - 1
    await host.environments.drop_unused()
    assert host.environments.pids == both
    host.now_s += 1
    await host.environments.drop_unused()
    assert host.environments.pids == both[:1]
    assert not host.report("quick").is_warm


async def test_environment_that_forks_is_not_dropped(host_of, quick):
    """However long ago it was used before."""
    host = host_of(quick, default=Offered("default", quick.interpreter))
    forking = asyncio.create_task(host.fork(quick))
    await asyncio.sleep(0)
    host.now_s += KEPT_S
    await host.environments.drop_unused()
    assert await forking in range(1, 2**22)


async def test_environment_that_lacks_something_says_so_until_it_is_mended(host_of, tmp_path):
    """Before anybody claims it, and without the agent being told."""
    python = make_environment(tmp_path / "bare", without=("dask_cuda",))
    bare = Offered("bare", python)
    host = host_of(bare)
    await host.environments.look()
    assert host.report("bare").problem.startswith("it lacks dask_cuda")
    with pytest.raises(Unavailable, match=r'"bare" of this host cannot be used.*lacks dask_cuda'):
        await host.fork(bare)
    _install(python, "dask_cuda")
    await host.environments.look()
    assert host.report("bare").problem == ""


def _install(python: Path, name: str) -> None:
    theirs = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    (packages_of(python) / name).symlink_to(theirs / name)


async def test_what_has_not_changed_is_not_looked_into_again(host_of, second):
    """A look at the same files tells nothing new."""
    host = host_of(second)
    await host.environments.look()
    assert host.report("second").versions["dask"]
    told = host.told
    await host.environments.look()
    assert host.told == told


class OnADeadDisk(Offered):
    """One whose files cannot even be looked at."""

    answers = threading.Event()

    def stamp(self) -> Stamp:
        self.answers.wait()
        return super().stamp()


async def test_disk_that_hangs_is_told_and_holds_up_no_look(host_of, quick, monkeypatch):
    """Nor does each look leave one more thread behind; an answer ends it."""
    monkeypatch.setattr("jupyter_gpupool.agent.environments._LOOKED_AT_WITHIN_S", 0.1)
    dead = OnADeadDisk("dead", quick.interpreter)
    host = host_of(dead)
    await host.environments.look()
    threads = threading.active_count()
    await host.environments.look()
    assert host.report("dead").problem == "its disk does not answer"
    assert threading.active_count() == threads
    dead.answers.set()
    monkeypatch.undo()
    await host.environments.look()
    assert host.report("dead").problem == ""


async def test_what_the_agents_own_environment_loads_stays_there(host_of, quick, monkeypatch):
    """Another one may not have it, or have it otherwise."""
    monkeypatch.setenv("PYTHONPATH", "/opt/ours")
    monkeypatch.setenv("GPUPOOL_PRE_IMPORT", "cudf")
    host = host_of(quick)
    await host.fork(quick)
    [zygote] = host.environments.pids
    told = procfs.environment_of(zygote)
    assert not {"PYTHONPATH", "GPUPOOL_PRE_IMPORT"} & set(told)


async def test_log_is_known_for_as_long_as_its_zygote_runs(host_of, quick):
    """So that it is cut when it grows, and not removed before."""
    host = host_of(quick)
    await host.fork(quick)
    assert host.environments.logs == {host.folder / f"zygote-quick-{os.geteuid()}.log"}
    await host.environments.close()
    assert not host.environments.logs


async def test_default_is_known_before_its_zygote_is_warm(host_of):
    """The first claim of a pool's life is compared as well."""
    report = host_of().report("default")
    assert (report.versions["python"], report.is_warm) == (sys.version.split()[0], False)


async def test_default_that_lacks_something_leaves_the_others_of_use(host_of, second, tmp_path):
    """Its host starts processes all the same; one whose zygote only died does not."""
    lacking = fake_python(tmp_path / "lacking", problem="it lacks dask_cuda")
    dying = tmp_path / "dying"
    dying.write_text("#!/bin/sh\nexit 1\n")
    dying.chmod(0o755)
    hosts = [host_of(second, default=Offered("default", path)) for path in (lacking, dying)]
    problems = [await host.environments.warm_default() for host in hosts]
    assert problems[0] == "it lacks dask_cuda"
    assert [host.environments.others_do for host in hosts] == [True, False]


async def test_default_that_lacks_something_is_warmed_anew_once_it_changed(host_of, tmp_path):
    """Whoever installs what it lacked need not restart the agent."""
    python = fake_python(tmp_path / "lacking", problem="it lacks dask_cuda")
    environments = host_of(default=Offered("default", python)).environments
    assert await environments.warm_default() == "it lacks dask_cuda"
    fake_python(python)
    await environments.look()
    assert await environments.warm_default() == ""


async def test_path_to_no_python_is_refused_at_the_start(host_of):
    """Its admin reads it at once, and not its first user."""
    host = host_of(Offered("list", Path("/bin/ls")))
    await host.environments.look()
    with pytest.raises(BadRequest, match='"list" has no Python at /bin/ls'):
        host.environments.refuse_no_python()


def test_wanted_environment_is_found_by_its_name(host_of):
    """No name is the default; an unknown one is told with those there are."""
    environments = host_of(Offered("rapids", Path("/opt/rapids/bin/python"))).environments
    assert environments.find("") == DEFAULT
    assert environments.find("rapids").name == "rapids"
    with pytest.raises(NotFound, match=r'named \'rapid\'.*"default", "rapids"'):
        environments.find("rapid")


def test_kernels_own_environment_needs_permission(host_of):
    """An admin's word on what may run on a host counts."""
    host = host_of(kernels_own=False)
    with pytest.raises(NotAllowed, match="kernel's own environment"):
        host.environments.find("kernel", "/home/ann/bin/python")


def test_kernels_own_environment_that_is_offered_anyway_is_that_one(host_of):
    """A kernel beside its embedded pool finds the default's zygote warm."""
    environments = host_of().environments
    assert environments.find("kernel", sys.executable) == DEFAULT
    other_name = DEFAULT.interpreter.with_name("python3")
    assert environments.find("kernel", str(other_name)) == DEFAULT
    own = environments.find("kernel", "/home/ann/bin/python")
    assert own == Offered("kernel", Path("/home/ann/bin/python"), is_kernels=True)


async def test_kernels_own_environment_starts_on_demand(host_of, quick):
    """As one that was written down, but for its name."""
    host = host_of()
    own = host.environments.find("kernel", str(quick.interpreter))
    await host.fork(own)
    await host.until_ended()
    assert host.environments.names == ("default",)
    assert len(list(host.folder.glob("zygote-kernel-*.log"))) == 1


async def test_user_keeps_few_kernels_environments_warm(host_of, tmp_path):
    """There is no end of paths to name, and each holds memory for long."""
    host = host_of()
    for number in range(6):
        host.now_s += 1
        host.ended.clear()
        python = fake_python(tmp_path / str(number) / "bin" / "python")
        await host.fork(host.environments.find("kernel", str(python)))
        await host.until_ended()
    assert len(host.environments.pids) == 3


async def test_kernel_is_asked_once_by_all_that_come_together(host_of, tmp_path):
    """A claim's processes are started at the same time."""
    asked = tmp_path / "asked"
    python = fake_python(tmp_path / "own" / "bin" / "python")
    python.write_text(python.read_text().replace("exit\n", f"echo >> {asked}; exit\n", 1))
    host = host_of()
    own = host.environments.find("kernel", str(python))
    async with asyncio.timeout(DEADLINE_S):
        await asyncio.gather(*(host.fork(own) for _ in range(3)))
    assert asked.read_text() == "\n"


@pytest.fixture
def theirs():
    """An environment that is not root's alone, where all may read it."""
    folder = Path(tempfile.mkdtemp(prefix="gpupool-"))
    folder.chmod(0o755)
    python = fake_python(folder / "bin" / "python")
    os.chown(python, NOBODY.uid, NOBODY.gid)
    yield Offered("theirs", python)
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' processes")
async def test_what_one_user_lacks_says_nothing_of_the_environment(host_of, theirs):
    """Packages of their own may spoil it for them alone; others' processes go on."""
    host = host_of(theirs)
    await host.fork(theirs, Identity(1234, 1234))
    others = host.environments.pids
    fake_python(theirs.interpreter, problem="it lacks dask_cuda")
    with pytest.raises(Unavailable, match="lacks dask_cuda"):
        await host.fork(theirs, NOBODY)
    assert host.report("theirs").problem == ""
    assert host.environments.pids == others


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' processes")
async def test_kernels_own_environment_is_never_shared(tmp_path):
    """Root's own zygote is not even considered, whoever owns the files."""
    zygotes = Zygotes(
        interpreter=Path("/bin/false"),
        log_folder=tmp_path,
        exited=lambda *_: None,
        may_share=False,
    )
    with pytest.raises(Unavailable):
        await zygotes.warm(NOBODY)
    await zygotes.close()
    assert (tmp_path / f"zygote-default-{NOBODY.uid}.log").exists()


@pytest.mark.parametrize("name", ["", "default", "kernel", "a b", "../x", "-x", "x" * 65])
def test_name_that_cannot_be_one_is_refused(name):
    """It becomes part of a file's name, and some mean something already."""
    with pytest.raises(BadRequest, match="cannot be the name"):
        read_offers({name: sys.executable})


@pytest.mark.parametrize("path", ["/no/such/python", "/etc/passwd", "/tmp"])
def test_path_to_no_program_is_refused(path):
    """In a sentence with the path that was tried."""
    with pytest.raises(BadRequest, match=r'"rapids" has no Python at /'):
        read_offers({"rapids": path})


def test_environment_is_given_by_its_folder_or_by_its_interpreter(second):
    """Whichever its admin thinks of; the link in its folder is what makes it one."""
    python = second.interpreter
    by_folder, by_path = read_offers({"a": str(python.parent.parent), "b": str(python)})
    assert by_folder.interpreter == by_path.interpreter == python
