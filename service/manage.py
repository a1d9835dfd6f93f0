"""Django's command line for developers: `python -m service.manage makemigrations`; operators use `trimtab-service`.

To use it with a running embedded service, set TRIMTAB_DATA_DIR and DATABASE_URL as in DATA_DIR/service.json. It runs as
a module, because a script in this folder would find `service/platform` where a library imports Python's `platform`.
"""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "service.config.settings.test")
    execute_from_command_line(sys.argv)
