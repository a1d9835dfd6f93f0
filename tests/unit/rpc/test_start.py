"""The start of the gRPC process, which everything waits for after a restart."""

import subprocess
import sys

CODE = """
import sys
import django
django.setup()
import service.rpc.server
print([name for name in ("torch", "botorch", "scipy", "optuna") if name in sys.modules])
"""


def test_the_grpc_process_loads_no_heavy_package_before_it_serves(programs_start: None) -> None:
    done = subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
