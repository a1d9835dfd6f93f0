"""The system's keyring, through the package `keyring` where that is installed: nothing here needs it."""

from importlib.util import find_spec
from types import ModuleType

SERVICE = "trimtab"


def usable() -> ModuleType | None:
    """The package, if it is installed and finds a keyring that keeps something."""
    if find_spec("keyring") is None:
        return None
    # It takes a tenth of a second to import: only those who store or read a login there wait for it.
    import keyring

    try:
        # What it calls its fallbacks, which refuse everything, have the priority 0 or less.
        return keyring if keyring.get_keyring().priority > 0 else None
    except Exception:  # noqa: BLE001 - keyrings raise whatever their system does
        return None


def put(ring: ModuleType, name: str, secret: str) -> bool:
    """Whether the keyring took it. One that is locked or full may not."""
    try:
        ring.set_password(SERVICE, name, secret)
    except Exception:  # noqa: BLE001 - as above
        return False
    return True


def get(name: str) -> str:
    """What was put. Raises KeyError where that is not to be had."""
    ring = usable()
    if ring is None:
        raise KeyError("there is no keyring any more")
    try:
        found = ring.get_password(SERVICE, name)
    except Exception as error:
        raise KeyError(f"the keyring refuses: {error}") from error
    if found is None:
        raise KeyError("the keyring does not have it")
    return str(found)


def remove(name: str) -> None:
    """Take it out, if it is there."""
    ring = usable()
    if ring is not None:
        try:
            ring.delete_password(SERVICE, name)
        except Exception:  # noqa: BLE001 - as above
            return
