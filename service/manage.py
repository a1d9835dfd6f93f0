"""Django's command line for developers (makemigrations, shell, dbshell); operators use `trimtab-service`.

To use it with a running embedded service, set TRIMTAB_DATA_DIR and DATABASE_URL as in DATA_DIR/service.json.
"""

import os
import sys
from pathlib import Path

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "service.config.settings.test")
    execute_from_command_line(sys.argv)
