"""What users may choose for when their claims are idle: checked when they ask, not when it is late.

Called by the manager's API. Which rule will be for a claim is known only once it has devices, so a
wish is refused only if no rule at all would grant it; `IdleRule.idle_terms` keeps to the bounds and
`what_becomes_of` says so.
"""

from collections.abc import Sequence

from .errors import BadRequest
from .idle_match import OwnWish
from .idle_rule import Choice, IdleRule, Terms
from .units import format_duration


def check_wish(rules: Sequence[IdleRule], wish: OwnWish) -> None:
    """Accept what at least one rule leaves to users.

    Raises:
        BadRequest: If none does; the hint says what may be chosen.
    """
    if wish == OwnWish() or any(_grants(rule, wish) for rule in rules):
        return
    field = "on_idle" if wish.action is not None else "idle_after_s"
    offers = [
        _offer(rule.name, rule.idle, rule.choice)
        for rule in rules
        if rule.choice is not None and rule.idle is not None
    ]
    if not offers:
        raise BadRequest(
            "The pool's policy leaves nothing to users of what becomes of idle claims.",
            field=field,
            hint="Leave on_idle and idle_after out; time_limit ends a claim by itself.",
        )
    raise BadRequest(
        "No rule of the pool's policy lets users choose that for idle claims.",
        field=field,
        hint=f"They may choose: {'; '.join(offers)}.",
    )


def what_becomes_of(wish: OwnWish, rule: IdleRule | None) -> str:
    """In a sentence, what the rule that is for a claim makes of a wish; "" if it does just that."""
    if wish == OwnWish():
        return ""
    if rule is None or rule.idle is None:
        return f"You chose {_chosen(wish)} for when it is idle; nothing is done, for no rule asks."
    terms = rule.idle_terms(wish)
    if terms is None or _is_done(wish, terms):
        return ""
    done = f"{terms.action} after {format_duration(terms.after_s)}"
    return (
        f'You chose {_chosen(wish)} for when it is idle; rule "{rule.name}" of the policy makes it'
        f" {done}."
    )


def _is_done(wish: OwnWish, terms: Terms) -> bool:
    return wish.action in (None, terms.action) and wish.after_s in (None, terms.after_s)


def _chosen(wish: OwnWish) -> str:
    action = "" if wish.action is None else wish.action.value
    after = "" if wish.after_s is None else f"after {format_duration(wish.after_s)}"
    return " ".join(filter(None, (action, after)))


def _grants(rule: IdleRule, wish: OwnWish) -> bool:
    if rule.choice is None or rule.idle is None:
        return False
    is_allowed = wish.action in (None, rule.idle.action, *rule.choice.actions)
    after_s = rule.idle.after_s if wish.after_s is None else wish.after_s
    return is_allowed and rule.choice.shortest_s <= after_s <= rule.choice.longest_s


def _offer(rule: str, own: Terms, choice: Choice) -> str:
    actions = sorted({own.action.value, *(each.value for each in choice.actions)})
    shortest, longest = (
        format_duration(seconds) for seconds in (choice.shortest_s, choice.longest_s)
    )
    return f'{" or ".join(actions)} after {shortest} to {longest} (rule "{rule}")'
