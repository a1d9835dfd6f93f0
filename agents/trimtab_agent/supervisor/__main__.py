"""`python -I -S .../supervisor SOCKET`: small, because Python compiles the file it is started with anew each time."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from trimtab_agent.supervisor.supervise import main

main(int(sys.argv[1]))
