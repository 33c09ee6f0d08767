"""Options of the services: a misspelt one is refused before anything starts."""

import pytest

from jupyter_gpupool.cli.services import check_options
from jupyter_gpupool.pool.errors import BadRequest

KNOWN = ("port", "ip", "state")


def test_misspelt_option_is_refused_with_the_nearest() -> None:
    """A manager on another port than asked for would be found by nobody."""
    with pytest.raises(BadRequest, match=r"no option --prot\. Did you mean --port\?"):
        check_options(["--prot=3"], KNOWN)


def test_known_options_settings_and_values_pass() -> None:
    """A dot makes it a setting; without dashes it is the value of the option before."""
    check_options(["--port=3", "--ip", "127.0.0.1", "--ManagerApp.x=1", "-f", "--"], KNOWN)
