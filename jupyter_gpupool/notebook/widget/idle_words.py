"""What the claim card says of idleness, in every language it speaks. Pure; used by `card_model`.

Made of a warning's evidence, never of the manager's sentence, which has one language.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jupyter_gpupool.pool.idle_rule import Ground
from jupyter_gpupool.pool.request import OnIdle
from jupyter_gpupool.pool.signals import Signal
from jupyter_gpupool.pool.units import TimeUnit, format_bytes, told_units
from jupyter_gpupool.protocol.evidence_view import EvidenceView

from .words import Language, Units


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleWords:
    """Every piece of a warning's why, and how to answer it.

    Attributes:
        quiet: What is said of signals that were quiet; the others go without saying.
        outcomes: What becomes of the results.
    """

    grounds: Mapping[Ground, str]
    quiet: Mapping[Signal, str]
    outcomes: Mapping[OnIdle, str]
    shrinks: str
    use: str
    mean_use: str
    held: str
    waiting: str
    why: str
    why_alone: str
    comma: str
    keep: str
    keep_minutes: str
    keep_title: str
    keep_minutes_title: str
    used_up: str
    why_keep: str
    reason: str
    cancel: str


_ENGLISH = IdleWords(
    grounds={
        Ground.IDLE: "Idle for {lasted}",
        Ground.ORPHANED: "Without kernel and client for {lasted}",
        Ground.LITTLE_USED: "Hardly used in {lasted}",
        Ground.HELD_LONG: "Held for {lasted}",
    },
    quiet={
        Signal.TASKS: "no tasks",
        Signal.CALLS: "no calls",
        Signal.KERNEL: "kernel at rest",
    },
    outcomes={
        OnIdle.HIBERNATE: " Results are kept.",
        OnIdle.RELEASE: " Results are lost.",
        OnIdle.SHRINK: "",
    },
    shrinks="The claim goes down to its fewest workers at {clock}",
    use="GPU {use} %",
    mean_use="GPU {use} % on the mean",
    held="{size} held",
    waiting="{count} waiting for it",
    why="{ground}: {details}.",
    why_alone="{ground}.",
    comma=", ",
    keep="Keep 1 h",
    keep_minutes="Keep {minutes} min",
    keep_title="Not taken as idle for one hour from now on",
    keep_minutes_title="Not taken as idle for {minutes} min: all that the policy still allows",
    used_up="The policy allows no longer keep now",
    why_keep="Why should it be kept? The policy asks.",
    reason="Reason",
    cancel="Cancel",
)

_CHINESE = IdleWords(
    grounds={
        Ground.IDLE: "已闲置 {lasted}",
        Ground.ORPHANED: "已有 {lasted} 没有内核和客户端",
        Ground.LITTLE_USED: "{lasted} 内几乎未使用",
        Ground.HELD_LONG: "已占有 {lasted}",
    },
    quiet={
        Signal.TASKS: "无任务",
        Signal.CALLS: "无调用",
        Signal.KERNEL: "内核静止",
    },
    outcomes={
        OnIdle.HIBERNATE: "结果会保留。",
        OnIdle.RELEASE: "结果会丢失。",
        OnIdle.SHRINK: "",
    },
    shrinks="申领将于 {clock} 缩减到最少的工作进程",
    use="GPU {use} %",
    mean_use="GPU 平均 {use} %",
    held="占用 {size}",
    waiting="{count} 个申领在等待",
    why="{ground}：{details}。",
    why_alone="{ground}。",
    comma="，",
    keep="保留 1 小时",
    keep_minutes="保留 {minutes} 分钟",
    keep_title="从现在起一小时内不按闲置回收",
    keep_minutes_title="{minutes} 分钟内不按闲置回收：策略目前只允许这么久",
    used_up="策略目前不允许再保留",
    why_keep="为什么要保留？策略要求说明。",
    reason="理由",
    cancel="取消",
)

IDLE_WORDS: Mapping[Language, IdleWords] = {
    Language.ENGLISH: _ENGLISH,
    Language.CHINESE: _CHINESE,
}


def why_text(evidence: EvidenceView, words: IdleWords, units: Units) -> str:
    """What showed that nobody uses it: "Idle for 15 min: no tasks, GPU 0 %, 31 GiB held."."""
    ground = words.grounds[evidence.ground].format(lasted=_lasted(evidence.lasted_ms, units))
    details = words.comma.join(_details(evidence, words))
    if not details:
        return words.why_alone.format(ground=ground)
    return words.why.format(ground=ground, details=details)


def _details(evidence: EvidenceView, words: IdleWords) -> Iterator[str]:
    yield from (said for signal, said in words.quiet.items() if signal in evidence.quiet)
    if evidence.gpu is not None:
        template = words.mean_use if evidence.ground is Ground.LITTLE_USED else words.use
        yield template.format(use=round(evidence.gpu / 10))
    if evidence.held_bytes is not None:
        yield words.held.format(size=format_bytes(evidence.held_bytes))
    # A manager that tells no number names them.
    if waiting := evidence.waiting or len(evidence.wanted_by):
        yield words.waiting.format(count=waiting)


def _lasted(length_ms: int, units: Units) -> str:
    """A duration as the card's other ones are written, but by us: it does not go on."""
    templates = {
        TimeUnit.SECOND: units.seconds,
        TimeUnit.MINUTE: units.minutes,
        TimeUnit.HOUR: units.hours,
        TimeUnit.DAY: units.days,
    }
    (count, unit), *rest = told_units(length_ms / 1000)
    parts = [templates[unit].format(count)]
    for number, small in rest:
        is_minutes = small is TimeUnit.MINUTE
        template = units.minutes_after if is_minutes else templates[small]
        parts.append(template.format(f"{number:02d}" if is_minutes else number))
    return " ".join(parts)
