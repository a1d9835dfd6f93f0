"""Access to the system's keyring through the optional package `keyring`."""

from importlib.util import find_spec
from types import ModuleType

SERVICE = "trimtab"


def usable() -> ModuleType | None:
    """Return the package if it is installed and finds a keyring that can store secrets, else None."""
    if find_spec("keyring") is None:
        return None
    # The import takes 0.1 s. Only programs that use the keyring pay for it.
    import keyring

    try:
        # `keyring` has fallbacks that refuse everything. Their priority is 0 or less.
        return keyring if keyring.get_keyring().priority > 0 else None
    except Exception:  # noqa: BLE001 - keyrings raise whatever their system does
        return None


def put(backend: ModuleType, name: str, secret: str) -> bool:
    """Store a secret; return whether the keyring accepted it. A locked or full keyring may refuse."""
    try:
        backend.set_password(SERVICE, name, secret)
    except Exception:  # noqa: BLE001 - as above
        return False
    return True


def get(name: str) -> str:
    """Return a stored secret. Raises KeyError if it cannot be read."""
    backend = usable()
    if backend is None:
        raise KeyError("the keyring is no longer available")
    try:
        found = backend.get_password(SERVICE, name)
    except Exception as error:
        raise KeyError(f"the keyring refuses: {error}") from error
    if found is None:
        raise KeyError("the keyring does not contain it")
    return str(found)


def remove(name: str) -> None:
    """Remove a secret if it is stored."""
    backend = usable()
    if backend is not None:
        try:
            backend.delete_password(SERVICE, name)
        except Exception:  # noqa: BLE001 - as above
            return
