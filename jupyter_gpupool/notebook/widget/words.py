"""What the claim card says, in every language it speaks: the one place to mend or add words.

Used by `card_model`. A word in braces is filled in there; times stay open until a browser, which
knows its reader's clock, writes them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from jupyter_gpupool.notebook.moments import ordinal
from jupyter_gpupool.pool.claim import Phase
from jupyter_gpupool.pool.claim_events import EndKind
from jupyter_gpupool.pool.lease import LeasePhase


class Language(StrEnum):
    """Languages of the card, as browsers name them."""

    ENGLISH = "en"
    CHINESE = "zh-CN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """How a time is written, by us and by a browser, a number for each {0}.

    Attributes:
        minutes_after: Minutes that come after hours.
    """

    moment: str
    seconds: str
    minutes: str
    minutes_after: str
    hours: str
    days: str
    left: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Every sentence, label and title of the card in one language."""

    units: Units
    phases: Mapping[Phase, str]
    ends: Mapping[EndKind, str]
    leases: Mapping[LeasePhase, str]
    label: str
    any_model: str
    waiting_for: str
    waiting: str
    never: str
    starting: str
    running: str
    until: str
    kept_until: str
    goes_back: str
    since: str
    ended_at: str
    in_line: str
    nth: Callable[[int], str]
    as_of: str
    start: str
    about: str
    nine_in_ten: str
    learned: str
    missing: str
    more_devices: str
    takes_one: str
    takes_many: str
    takes_in: str
    rule: str
    silent: str
    gone: str
    busy: str
    workers: str
    granted: str
    fewer: str
    fewer_title: str
    more: str
    more_title: str
    last_one: str
    cancel: str
    cancel_title: str
    release: str
    release_now: str
    release_title: str
    release_ask: str
    stay: str
    resume: str
    resume_title: str
    hibernate: str
    hibernate_title: str
    results_kept: str
    unkept: str
    dashboards: str


_ENGLISH = Words(
    units=Units(
        moment="less than 1 min",
        seconds="{0} s",
        minutes="{0} min",
        minutes_after="{0} min",
        hours="{0} h",
        days="{0} d",
        left="in {0}",
        now="now",
    ),
    phases={
        Phase.PENDING: "Waiting",
        Phase.STARTING: "Starting",
        Phase.RUNNING: "Running",
        Phase.HIBERNATING: "Hibernating",
        Phase.HIBERNATED: "Hibernated",
        Phase.RESUMING: "Resuming",
        Phase.ENDING: "Ending",
        Phase.ENDED: "Ended",
    },
    ends={
        EndKind.RELEASED: "Released",
        EndKind.EXPIRED: "Expired",
        EndKind.RECLAIMED: "Reclaimed",
        EndKind.CANCELLED: "Cancelled",
        EndKind.FAILED: "Failed",
    },
    leases={
        LeasePhase.GRANTED: "Starting",
        LeasePhase.RUNNING: "Running",
        LeasePhase.RETIRING: "Handing over its results",
        LeasePhase.ENDING: "Ending",
    },
    label="Claim {name}, {state}",
    any_model="GPU",
    waiting_for="Waiting for {shape}",
    waiting="waiting",
    never="{reason}",
    starting="{word} · {granted} of {workers}",
    running="Running {age}",
    until="until {clock}",
    kept_until="kept until {clock}",
    goes_back="Goes back {clock}",
    since="{word} since {clock}",
    ended_at="{word} {clock}",
    in_line="In line",
    nth=ordinal,
    as_of="as of {clock}",
    start="Start",
    about="about {clock}",
    nine_in_ten="by {clock} with nine in ten",
    learned="learned from past claims",
    missing="Waiting for {shape} more",
    more_devices="and {count} more",
    takes_one="Your {shape} goes back at {clock}",
    takes_many="Your {shape} go back at {clock}",
    takes_in=", {left}.",
    rule="Rule {rule}",
    silent="The manager does not answer. As of {clock}; the claim runs on.",
    gone="The kernel is gone. As of {clock}.",
    busy="The kernel has not answered yet; it may be busy. This is done as soon as it is free.",
    workers="Workers",
    granted="{granted} of {wanted}",
    fewer="Fewer",
    fewer_title="One worker fewer; its results move to the others",
    more="More",
    more_title="One worker more, as soon as a device is free",
    last_one="This is the last worker: Release gives it back",
    cancel="Cancel",
    cancel_title="Give up the place in line",
    release="Release",
    release_now="Release now",
    release_title="Give the devices back and end the claim",
    release_ask="Release {shape}? What runs there is lost.",
    stay="Keep",
    resume="Resume",
    resume_title="Have devices again, as soon as there is room; results come back by themselves",
    hibernate="Hibernate",
    hibernate_title="Give the devices back, keep the results",
    results_kept="{results}, {size}, kept until {clock}; tasks submitted meanwhile wait.",
    unkept="Cannot be kept: {keys}",
    dashboards="Dashboards",
)

_CHINESE = Words(
    units=Units(
        moment="不到 1 分钟",
        seconds="{0} 秒",
        minutes="{0} 分钟",
        minutes_after="{0} 分",
        hours="{0} 小时",
        days="{0} 天",
        left="{0}后",
        now="现在",
    ),
    phases={
        Phase.PENDING: "等待中",
        Phase.STARTING: "启动中",
        Phase.RUNNING: "运行中",
        Phase.HIBERNATING: "休眠中",
        Phase.HIBERNATED: "已休眠",
        Phase.RESUMING: "恢复中",
        Phase.ENDING: "结束中",
        Phase.ENDED: "已结束",
    },
    ends={
        EndKind.RELEASED: "已释放",
        EndKind.EXPIRED: "已到期",
        EndKind.RECLAIMED: "已回收",
        EndKind.CANCELLED: "已取消",
        EndKind.FAILED: "失败",
    },
    leases={
        LeasePhase.GRANTED: "启动中",
        LeasePhase.RUNNING: "运行中",
        LeasePhase.RETIRING: "正在移交结果",
        LeasePhase.ENDING: "结束中",
    },
    label="申领 {name}，{state}",
    any_model="GPU",
    waiting_for="正在等待 {shape}",
    waiting="等待中",
    never="池的现状无法满足：{reason}",
    starting="{word} · 工作进程 {granted} / {count}",
    running="运行中 {age}",
    until="到 {clock}",
    kept_until="保留到 {clock}",
    goes_back="{clock} 回收",
    since="{clock} 起{word}",
    ended_at="{clock} {word}",
    in_line="排队",
    nth=lambda number: f"第 {number} 位",
    as_of="截至 {clock}",
    start="预计开始",
    about="约 {clock}",
    nine_in_ten="九成把握不晚于 {clock}",
    learned="由以往申领推知",
    missing="还在等待 {shape}",
    more_devices="另有 {count} 个设备",
    takes_one="你的 {shape} 将于 {clock} 回收",
    takes_many="你的 {shape} 将于 {clock} 回收",
    takes_in="，{left}。",
    rule="规则 {rule}",
    silent="管理器没有应答。截至 {clock}；申领继续运行。",
    gone="内核已结束。截至 {clock}。",
    busy="内核尚未应答，可能正忙；空出来后立即执行。",
    workers="工作进程",
    granted="{granted} / {wanted}",
    fewer="减少",
    fewer_title="减少一个工作进程，其结果移交给其他工作进程",
    more="增加",
    more_title="有可用设备时增加一个工作进程",
    last_one="这是最后一个工作进程：用“释放”归还",
    cancel="取消",
    cancel_title="放弃排队位置",
    release="释放",
    release_now="立即释放",
    release_title="归还设备并结束申领",
    release_ask="释放 {shape}？其上运行的内容将会丢失。",
    stay="保留",
    resume="恢复",
    resume_title="有可用设备时重新获得；结果会自动返回",
    hibernate="休眠",
    hibernate_title="归还设备，保留结果",
    results_kept="{count} 个结果，{size}，保留到 {clock}；期间提交的任务会等待。",
    unkept="无法保留：{keys}",
    dashboards="仪表板",
)

WORDS: Mapping[Language, Words] = {Language.ENGLISH: _ENGLISH, Language.CHINESE: _CHINESE}
"""The card's words by language."""
