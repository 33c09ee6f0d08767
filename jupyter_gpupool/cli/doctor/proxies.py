"""Would an HTTP proxy of the environment catch what is said on this machine itself?"""

from collections.abc import Iterator, Mapping
from urllib.request import getproxies, proxy_bypass

from .finding import Finding, note, well
from .sight import Sight

_HERE = ("127.0.0.1", "localhost")
_HTTP = frozenset(("http", "https", "all"))


def check_proxies(_sight: Sight) -> Iterator[Finding]:
    """Read the variables that programs agree on."""
    yield judge_proxies(getproxies())


def judge_proxies(proxies: Mapping[str, str]) -> Finding:
    """Our own client goes past a proxy on this machine; what people use beside it may not."""
    names = sorted(_HTTP & proxies.keys())
    caught = [host for host in _HERE if not proxy_bypass(host, proxies)]
    if not names or not caught:
        return well("proxies", "No HTTP proxy stands between programs of this machine.")
    variables = ", ".join(f"{name.upper()}_PROXY" for name in names)
    return note(
        "proxy-catches-loopback",
        f"{variables} would have {' and '.join(caught)} asked through a proxy.",
        "Run: export NO_PROXY=localhost,127.0.0.1; gpupool needs it not, other programs may.",
    )
