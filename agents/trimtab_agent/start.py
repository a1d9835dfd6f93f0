"""The entry point of `trimtab-agent`. It imports little, because `wrap` must start its command quickly."""

import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == ["wrap"]:
        from trimtab_agent.matching import wrap

        wrap.main(sys.argv[2:])
    from trimtab_agent.main import main as run

    run()


if __name__ == "__main__":
    main()
