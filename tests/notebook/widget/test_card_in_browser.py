"""The card as a browser draws it: words, presses, keyboard, time, language, and no live look.

On a bare page, where the widget's model is a plain object and the clock stands at 14:16:20.
"""

from datetime import datetime, timedelta

import pytest

NOW = datetime.fromisoformat("2026-11-30T14:16:20+00:00")
WARNING = {
    "rule": "interactive",
    "deadline": NOW + timedelta(seconds=220),
    "reason": "No tasks.",
    "keep": {"longest_s": 7200},
}
STARTED = NOW - timedelta(minutes=72)


def test_running_claim_is_drawn_with_icon_and_word(mount, a_view):
    """Colour only repeats what both say."""
    page = mount(a_view(name="cells", started_at=STARTED))
    assert page.locator("header").inner_text().split("\n") == ["cells", "Running 1 h 12 min"]
    assert page.locator("header svg").get_attribute("data-icon") == "running"
    assert page.get_by_role("article").get_attribute("aria-label") == "Claim cells, Running"


def test_names_are_text_whatever_is_in_them(mount, a_view):
    """No name of a claim becomes a part of the page."""
    name = "<img src=x onerror=\"document.title='hacked'\">"
    page = mount(a_view(name=name, reason=name))
    assert page.locator("h3").inner_text() == name
    assert page.locator("article img").count() == 0


def test_release_asks_before_it_is_sent(mount, a_view, a_lease):
    """The question has the keyboard, on the harmless answer."""
    page = mount(a_view(leases=(a_lease("h", model="A100"),)))
    page.get_by_role("button", name="Release").click()
    question = page.get_by_role("group", name="Release 1 × A100? What runs there is lost.")
    assert question.get_by_role("button", name="Keep").evaluate("it => it.matches(':focus')")
    assert page.evaluate("model.sent") == []
    question.get_by_role("button", name="Release").click()
    assert page.evaluate("model.sent") == [{"act": "release"}]


def test_escape_takes_the_question_back(mount, a_view):
    """And the keyboard is where it was."""
    page = mount(a_view())
    page.get_by_role("button", name="Release").press("Enter")
    page.keyboard.press("Escape")
    assert page.get_by_role("group", name="What runs there").count() == 0
    assert page.get_by_role("button", name="Release").evaluate("it => it.matches(':focus')")
    assert page.evaluate("model.sent") == []


def test_more_and_fewer_ask_for_a_number(mount, a_view):
    """Of one worker the last is not taken by a step."""
    page = mount(a_view())
    page.get_by_role("button", name="Fewer").evaluate("it => it.click()")
    page.get_by_role("button", name="More").click()
    assert page.evaluate("model.sent") == [{"act": "scale", "workers": 2}]


def test_typed_number_is_asked_for(mount, a_view):
    """What is no number goes back to what is wanted."""
    page = mount(a_view())
    field = page.get_by_role("textbox", name="Workers")
    field.fill("many")
    field.press("Enter")
    assert field.input_value() == "1"
    field.fill("5")
    field.press("Enter")
    assert page.evaluate("model.sent") == [{"act": "scale", "workers": 5}]


def test_second_press_waits_for_the_first(mount, a_view):
    """An impatient double click asks once."""
    page = mount(a_view(warning=WARNING))
    page.get_by_role("button", name="Keep 1 h").dblclick()
    assert page.evaluate("model.sent") == [{"act": "keep"}]


def test_busy_kernel_is_told(mount, a_view):
    """A press that gets no answer is explained, until it gets one."""
    page = mount(a_view(warning=WARNING))
    page.get_by_role("button", name="Keep 1 h").click()
    page.clock.run_for(2000)
    assert page.get_by_text("The kernel has not answered yet").is_visible()
    page.evaluate("model.push('doing', 'keep')")
    assert page.get_by_text("The kernel has not answered yet").count() == 0
    assert page.get_by_role("button", name="Keep 1 h").get_attribute("aria-busy") == "true"


def test_trouble_is_said_in_the_card(mount, a_view):
    """In one sentence, aloud."""
    page = mount(a_view())
    page.evaluate("model.push('trouble', 'You may not do this.')")
    assert page.get_by_role("alert").inner_text() == "You may not do this."


def test_change_of_state_is_spoken(mount, a_view, push):
    """Once, and not what a minute changes."""
    page = mount(a_view(name="cells"))
    spoken = page.locator(".gp-spoken")
    assert spoken.inner_text() == ""
    push(page, a_view(name="cells", warning=WARNING))
    said = "Claim cells, Running. Goes back 14:20. Your cells go back at 14:20, in 4 min."
    assert spoken.inner_text() == said


def test_warning_is_an_alert_once_however_many_copies_there_are(mount, a_view, push):
    """Two cards of a claim on one page, and one voice; what is settled is no alert any more."""
    page = mount(a_view(name="cells"))
    page.evaluate("another()")
    push(page, a_view(name="cells", warning=WARNING))
    alerts = page.locator(".gp-spoken[role='alert']").all_inner_texts()
    assert [bool(text) for text in alerts] == [True]
    assert page.get_by_role("button", name="Keep 1 h").count() == 2
    push(page, a_view(name="cells", kept_until=NOW + timedelta(hours=1)))
    assert page.locator(".gp-Warning").count() == 0
    assert page.locator(".gp-spoken[role='alert']").count() == 0


def test_keep_asks_why_where_the_policy_does(mount, a_view):
    """The field has the keyboard, an empty reason is not sent, and Enter sends the other one."""
    asking = WARNING | {"keep": {"longest_s": 7200, "asks_reason": True}}
    page = mount(a_view(warning=asking))
    page.get_by_role("button", name="Keep 1 h").press("Enter")
    field = page.get_by_role("textbox", name="Reason")
    assert field.evaluate("it => it.matches(':focus')")
    field.press("Enter")
    assert page.evaluate("model.sent") == []
    page.keyboard.type("lunch")
    page.keyboard.press("Enter")
    assert page.evaluate("model.sent") == [{"act": "keep", "reason": "lunch"}]


def test_hibernate_and_resume_are_one_press_each(mount, a_view, push):
    """Neither loses anything, so neither asks."""
    page = mount(a_view())
    page.get_by_role("button", name="Hibernate").click()
    page.evaluate("model.push('doing', '')")
    keeping = {"held": 1, "held_bytes": 1024}
    view = a_view(phase="hibernated", expires_at=NOW + timedelta(days=3), keeping=keeping)
    push(page, view)
    assert page.get_by_text("1 result, 1 KiB, kept until Thu 14:16").is_visible()
    page.get_by_role("button", name="Resume").click()
    assert page.evaluate("model.sent") == [{"act": "hibernate"}, {"act": "resume"}]


def test_keyboard_stays_where_it_is(mount, a_view, push):
    """A push redraws the card under the user's fingers."""
    page = mount(a_view())
    page.get_by_role("textbox", name="Workers").fill("1")
    page.keyboard.type("2")
    push(page, a_view(reason="something else"))
    page.keyboard.type("3")
    assert page.get_by_role("textbox", name="Workers").input_value() == "123"


def test_every_act_is_reached_by_tab_and_its_focus_is_seen(mount, a_view):
    """In reading order."""
    page = mount(a_view())
    reached = []
    for _ in range(5):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        assert focused.evaluate("it => getComputedStyle(it).outlineStyle") == "solid"
        reached.append(focused.get_attribute("data-key"))
    assert reached == ["fewer", "workers", "more", "hibernate", "release"]


def test_times_change_by_the_minute(mount, a_view):
    """And never by the second."""
    page = mount(a_view(warning=WARNING))
    when = page.locator(".gp-Warning time").nth(1)
    shown = [when.inner_text()]
    for _ in range(4):
        page.clock.run_for(60_000)
        shown.append(when.inner_text())
    assert shown == ["in 4 min", "in 3 min", "in 2 min", "in 1 min", "now"]


@pytest.mark.parametrize(
    ("after", "shown"),
    [
        (timedelta(hours=3), "Running 1 h 12 min · until 17:16"),
        (timedelta(days=2), "Running 1 h 12 min · until Wed 14:16"),
        (timedelta(days=20), "Running 1 h 12 min · until Dec 20 14:16"),
    ],
)
def test_clock_names_the_day_when_it_is_another_one(after, shown, mount, a_view):
    """A week from now on, the date."""
    page = mount(a_view(started_at=STARTED, expires_at=NOW + after))
    assert page.locator(".gp-Claim-state").inner_text() == shown


@pytest.mark.parametrize(
    ("language", "button"),
    [("en", "Release"), ("zh-CN", "释放"), ("zh_CN", "释放"), ("de", "Release")],
)
def test_card_speaks_the_pages_language(language, button, mount, a_view):
    """English where it has no better one."""
    page = mount(a_view(), language=language)
    assert page.locator("footer [data-key='release']").inner_text() == button


@pytest.mark.parametrize(
    "end",
    [
        "model.trigger('comm_live_update')",
        "kernel.statusChanged.emit(kernel, 'dead')",
        "kernel.disposed.emit(kernel)",
    ],
)
def test_card_of_a_gone_kernel_looks_not_live(end, mount, a_view):
    """As last known, with its time and nothing to press; a time in it stands still."""
    page = mount(a_view(started_at=STARTED))
    page.evaluate(end)
    assert page.get_by_text("The kernel is gone. As of 14:16.").is_visible()
    assert page.get_by_role("button").count() == 0
    page.clock.run_for(600_000)
    assert page.locator(".gp-Claim-state").inner_text() == "Running 1 h 12 min"
    assert page.locator("header svg").get_attribute("data-icon") == "unlinked"


def test_card_in_an_exported_page_looks_not_live(mount, a_view):
    """No kernel stands behind it."""
    page = mount(a_view())
    page.evaluate("at => document.head.insertAdjacentHTML('beforeend', at)", _WIDGET_STATE)
    page.evaluate("closers[0](); another()")
    assert page.get_by_text("The kernel is gone. As of 14:16.").is_visible()


def test_silent_manager_is_told(mount, a_view, push):
    """The claim runs on, and what is shown says of when it is."""
    page = mount(a_view())
    push(page, a_view(), is_live=False)
    told = page.get_by_text("The manager does not answer. As of 14:16; the claim runs on.")
    assert told.is_visible()


def test_copies_are_in_step_and_leave_nothing(mount, a_view, push):
    """Two views of one model; closed ones hear no more."""
    page = mount(a_view())
    page.evaluate("another()")
    push(page, a_view(phase="ended", end="released"))
    assert page.locator("[data-state='released']").count() == 2
    page.evaluate("closers.forEach(close => close())")
    assert page.locator("article").count() == 0
    assert page.evaluate("[model.listeners, kernel.listeners]") == [0, 0]


def test_dashboards_are_behind_the_jupyter_server(mount, a_view):
    """Right under any base URL; without a server there is no link."""
    page = mount(a_view(id="c/1"))
    assert page.get_by_role("link").count() == 0
    page.evaluate("at => document.head.insertAdjacentHTML('beforeend', at)", _JUPYTER_CONFIG)
    page.evaluate("another()")
    link = page.get_by_role("link", name="Dashboards")
    assert link.get_attribute("href") == "/a%20b/gpupool/dashboards/c%2F1/status"
    assert link.get_attribute("rel") == "noopener"


def test_nothing_moves_for_those_who_wish_so(mount, a_view):
    """The open ring stands still."""
    page = mount(a_view(phase="starting"), reduced_motion="reduce")
    icon = page.locator("header svg")
    assert icon.evaluate("it => getComputedStyle(it).animationName") == "none"


@pytest.mark.parametrize("language", ["en", "zh-CN"])
@pytest.mark.parametrize("phase", ["pending", "running", "warned", "hibernated"])
def test_state_and_buttons_are_never_cut(phase, language, mount, a_view):
    """At any width down to 380 px; a name is cut, and has its title."""
    name = "ablation-warmup-cosine-lr-3e-4-seed17-" * 2
    state = {"phase": "running", "warning": WARNING} if phase == "warned" else {"phase": phase}
    page = mount(a_view(name=name, **state), language=language)
    for width in (740, 380):
        page.set_viewport_size({"width": width, "height": 600})
        for part in ("article", "header", ".gp-Claim-state"):
            assert not page.locator(part).evaluate("it => it.scrollWidth > it.clientWidth")
    assert page.locator("h3").get_attribute("title") == name


_WORD = "a-host-of-a-cluster-with-a-name-" + "x" * 60


@pytest.mark.parametrize("width", [740, 380])
@pytest.mark.parametrize("state", ["pending", "running", "warned", "failed"])
def test_whatever_is_said_wraps(state, width, mount, a_view, a_lease):
    """No reason, host or model is so long that it leaves the card, or is cut."""
    states = {
        "pending": {"phase": "pending", "wait": {"place": 1, "reason": _WORD, "never": False}},
        "running": {"expires_at": NOW + timedelta(days=20)},
        "warned": {"warning": {**WARNING, "rule": _WORD}},
        "failed": {"phase": "ended", "end": "failed", "reason": _WORD},
    }
    leases = [a_lease(_WORD, model="NVIDIA A100-SXM4-80GB", phase="retiring")]
    page = mount(a_view(name=_WORD, **states[state], leases=leases), width=width)
    assert not page.locator("article").evaluate("it => it.scrollWidth > it.clientWidth")
    kept = ".gp-Card *:not(h3):not(.gp-spoken)" + ":not(td:first-child)" * (width == 740)
    cut = page.locator(kept).evaluate_all(
        "all => all.filter(it => it.scrollWidth > it.clientWidth + 1"
        " && getComputedStyle(it).overflowX !== 'visible').map(it => it.textContent)"
    )
    assert cut == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("selector", [".gp-Claim-state", ".gp-Card-body .gp-dim", ".gp-Warning p"])
def test_text_can_be_read(selector, theme, mount, a_view, a_lease):
    """At 4.5:1 or more, in both themes."""
    page = mount(a_view(leases=(a_lease("gpu-03"),), warning=WARNING))
    page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
    assert page.locator(selector).first.evaluate(_CONTRAST) >= 4.5


_WIDGET_STATE = '<script type="application/vnd.jupyter.widget-state+json">{}</script>'
_JUPYTER_CONFIG = """
<script id="jupyter-config-data" type="application/json">{"baseUrl": "/a%20b/"}</script>"""

_CONTRAST = """it => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const over = (colours) => {
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => rgb.map((one) => one / 255)
    .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = [];
  for (let node = it; node; node = node.parentElement) {
    behind.unshift(getComputedStyle(node).backgroundColor);
  }
  const [a, b] = [over(behind), over([...behind, getComputedStyle(it).color])].map(light);
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""
