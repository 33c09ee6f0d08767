"""A look in several goes: it rests, it may be given up, and it comes to its end."""

from jupyter_gpupool.scheduling.looking import Looking

_PARTS = 100


def _parts(seen):
    """A look at a hundred things, one after the other."""
    for part in range(_PARTS):
        seen.append(part)
        yield 1


def test_a_go_takes_as_much_effort_as_it_may():
    """It rests where it has taken enough, and the next go takes up there."""
    seen = []
    looking = Looking(lambda: _parts(seen), effort=40)
    assert [looking.go_on() for _ in range(3)] == [False, False, True]
    assert seen == list(range(_PARTS))


def test_a_look_that_was_given_up_begins_anew():
    """What was seen before something happened may no longer be so."""
    seen = []
    looking = Looking(lambda: _parts(seen), effort=40)
    looking.go_on()
    looking.stop()
    looking.go_on()
    assert seen[:40] == seen[40:80] == list(range(40))


def test_a_look_comes_to_its_end_however_much_happens():
    """Each one that is given up lets the next go further: nobody is passed over for ever."""
    looking, goes = Looking(lambda: _parts([]), effort=1), 1
    while not looking.go_on():
        looking.stop()
        goes += 1
    assert goes == 8  # 2 ** 7 is the first that is more than a hundred


def test_a_look_without_bounds_takes_one_go():
    """Where nobody minds how long it takes."""
    assert Looking(lambda: _parts([]), effort=None).go_on()
