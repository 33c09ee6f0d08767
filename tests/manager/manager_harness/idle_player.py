"""A claim that is used, or not, in virtual time: what its host's agent sees of it."""

from dataclasses import dataclass, field
from functools import partial

from jupyter_gpupool.manager.service.policy import ApplyPolicy, apply_policy
from jupyter_gpupool.manager.service.using import AttachKernel, attach_kernel
from jupyter_gpupool.pool.claim import Claim
from jupyter_gpupool.pool.ids import UserName
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.protocol.link import ClaimUse
from jupyter_gpupool.protocol.using import KernelActivity, KernelBody, KernelState

from .agent_player import AgentPlayer
from .pool_player import PoolPlayer

GIB = 2**30
_WITHOUT_QUIET = (KernelState.BUSY, KernelState.DEAD, KernelState.UNKNOWN)
OF_AGENT = frozenset({Signal.TASKS, Signal.CALLS, Signal.CLIENTS, Signal.MEMORY})


@dataclass
class IdlePlayer:
    """One claim on one host of a pool.

    Attributes:
        step_s: From report to report.
        seen_s: Until when the agent has told.
    """

    pool: PoolPlayer
    agent: AgentPlayer
    claim_id: str
    step_s: float = 10.0
    seen_s: float = field(default=0.0)

    def __post_init__(self) -> None:
        self.seen_s = self.pool.time.monotonic_s

    @property
    def claim(self) -> Claim:
        """As it is now."""
        return self.pool.now(self.claim_id)

    async def rest(self, for_s: float, *active: Signal, **more: object) -> Claim:
        """So long only these signals are active, and its host says so."""
        until_s = self.pool.time.monotonic_s + for_s
        while (left_s := until_s - self.pool.time.monotonic_s) > 0:
            self.pool.time.pass_s(min(self.step_s, left_s))
            await self.tell(*active, **more)
        return self.claim

    async def tell(self, *active: Signal, **more: object) -> None:
        """Its host reports what went on since it did so last."""
        now_s = self.pool.time.monotonic_s
        self.agent.uses = (self.use(self.seen_s, now_s, *active, **more),)
        self.seen_s = now_s
        await self.pool.say(self.agent)
        self.agent.uses = ()

    def use(self, begin_s: float, end_s: float, *active: Signal, **more: object) -> ClaimUse:
        """What its host saw of it in a window."""
        known = {"gpu_peak": 0, "gpu_mean": 0, "held_bytes": 31 * GIB, "clients": 1} | more
        return ClaimUse(
            claim_id=self.claim_id,
            begin_ms=round(begin_s * 1000),
            end_ms=round(end_s * 1000),
            has_scheduler=True,
            leases=tuple(lease.id for lease in self.pool.leases(self.claim)),
            **{"active": frozenset(active), "quiet": OF_AGENT - set(active)} | known,
        )

    async def attach(self, kernel: str = "k", pid: int = 7) -> None:
        """A kernel uses it from now on."""
        body = KernelBody(host="lab", boot_id="boot", pid=pid, started=1)
        command = AttachKernel(
            caller=self.pool.user("ann"), claim_id=self.claim_id, kernel_id=kernel, body=body
        )
        await self.pool.service.execute(partial(attach_kernel, command=command))

    def server_says(
        self, state: KernelState, quiet_for_s: float | None = None, kernel: str = "k"
    ) -> None:
        """A Jupyter server tells of a kernel."""
        told = KernelActivity(kernel=kernel, state=state, quiet_for_s=quiet_for_s)
        self.pool.service.activity.take(self.claim_id, self.claim.kernels, {kernel: told})

    async def rest_with(
        self, for_s: float, state: KernelState, *, every_s: float = 30.0, **more: object
    ) -> Claim:
        """So long its kernel is in this state, and its server says so each half minute."""
        begin_s = self.pool.time.monotonic_s
        while (passed_s := self.pool.time.monotonic_s - begin_s) < for_s:
            quiet_s = None if state in _WITHOUT_QUIET else 600.0 + passed_s
            self.server_says(state, quiet_s)
            await self.rest(min(every_s, for_s - passed_s), **more)
        return self.claim


async def apply(pool: PoolPlayer, source: str) -> None:
    """An admin applies a policy."""
    command = ApplyPolicy(source=source, by=UserName("root"))
    await pool.service.execute(partial(apply_policy, command=command))


async def a_running_claim(
    pool: PoolPlayer, *, devices: int = 2, least: int = 2, **terms: object
) -> IdlePlayer:
    """Ann's claim of all devices of a host."""
    agent = await pool.joined("a", devices)
    claim = await pool.claim(least, devices, **terms)
    await pool.come_up(agent)
    return IdlePlayer(pool, agent, claim.id)
