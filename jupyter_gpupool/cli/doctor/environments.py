"""Can workers read what this Python pickles? Compares it with the pool's environments. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from jupyter_gpupool.pool.agreement import disagreement
from jupyter_gpupool.protocol.using import EnvironmentView

from .finding import Finding, note, problem, warning, well
from .pool_view import PoolView


def judge_environments(view: PoolView, here: Mapping[str, str]) -> Iterator[Finding]:
    """One environment that agrees is enough, and best if it is the one a claim gets by itself."""
    if view.status is None:
        return
    if view.environments is None:
        yield note(
            "environments-untold",
            "The manager does not tell which Python environments it has.",
            "Nothing; a manager of this release tells.",
        )
        return
    usable = [each for each in view.environments if not each.problem]
    for each in view.environments:
        if each.problem:
            yield _unusable(each)
    if usable:
        yield _judge_agreement(usable, here)


def _unusable(environment: EnvironmentView) -> Finding:
    return warning(
        "environment-unusable",
        f'The pool\'s environment "{environment.name}" cannot be used: {environment.problem}',
        "Have it mended on its host, or claim in another one.",
    )


def _judge_agreement(usable: Sequence[EnvironmentView], here: Mapping[str, str]) -> Finding:
    agreeing = [each for each in usable if disagreement(here, each.versions) is None]
    names = ", ".join(f'"{each.name}"' for each in agreeing)
    default = next((each for each in usable if each.is_default), usable[0])
    apart = disagreement(here, default.versions)
    if apart is None:
        noun = "environment" if len(agreeing) == 1 else "environments"
        what = f"This Python and its packages agree with the pool's {noun} {names}."
        return well("environments-agree", what)
    what = apart.sentence(default.name)
    if agreeing:
        mend = f'Claim with environment="{agreeing[0].name}", or {apart.remedy}.'
        return warning("default-environment-differs", what, mend)
    return problem("environments-differ", what, f"Either {apart.remedy}, or have one added.")
