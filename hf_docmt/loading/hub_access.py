"""Whether a name can be that of a model, before anything heavy is imported: a folder, in the cache, or on the Hub."""

import os
import socket
import threading
from pathlib import Path
from urllib.parse import urlsplit

from hf_docmt.files import check_hub_name, is_address

SECONDS = 1.5  # in which the Hub has to answer
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def check_within_reach(name: str | Path, revision: str | None = None) -> None:
    """ValueError for a path of no folder, and a name not in the cache, where the Hub does not answer in `SECONDS`."""
    if is_address(name):
        return
    check_hub_name(name, "model")
    if Path(name).exists():
        return
    from huggingface_hub import constants, try_to_load_from_cache

    if constants.HF_HUB_OFFLINE or any(map(os.environ.get, PROXIES)):
        return
    files = ("config.json", "adapter_config.json")
    if any(isinstance(try_to_load_from_cache(str(name), file, revision=revision), str) for file in files):
        return
    host = urlsplit(constants.ENDPOINT)
    if not is_reachable(host.hostname or "", host.port or (80 if host.scheme == "http" else 443)):
        raise ValueError(
            f"{name}: no such folder, no such model in the cache, and {host.hostname} cannot be reached; check the "
            "name and the network"
        )


def is_reachable(host: str, port: int, seconds: float = SECONDS) -> bool:
    """Whether a connection is made in time; asking for the address has no limit of its own, so it is a thread."""
    found = threading.Event()

    def connect():
        try:
            socket.create_connection((host, port), seconds).close()
            found.set()
        except OSError:
            pass
        finally:
            ended.set()

    ended = threading.Event()
    threading.Thread(target=connect, daemon=True).start()
    ended.wait(seconds)
    return found.is_set()
