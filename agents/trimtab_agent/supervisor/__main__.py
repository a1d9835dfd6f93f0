"""`python -I -S .../supervisor SOCKET GROUP`, or `... FOLDER JOB RESTART NODE` in a batch job.

This file is small because Python compiles its start file every time.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

if len(sys.argv) == 3:
    from trimtab_agent.supervisor.supervise import main

    main(int(sys.argv[1]), sys.argv[2])
else:
    from trimtab_agent.supervisor.batch import run

    sys.exit(run(*sys.argv[1:]))
