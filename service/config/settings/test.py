"""For tests inside one process. tests/conftest.py fills in the database's address when the first test needs it."""

from service.config.settings.base import *

DATABASES = {"default": database("postgresql:///trimtab")}
SECRET_KEY = "only-for-tests"
ALLOWED_HOSTS = ["*"]
TRIMTAB_ADMIN_TOKEN = "test-token"
TRIMTAB_ADMIN_TOKEN_FILE = ""
# Each test has rows of its own: nothing is remembered from one to the next.
TRIMTAB_TRUST_SECONDS = 0.0
# Messages stay in this process and nobody takes them: a test that wants a task done calls it.
CELERY_BROKER_URL = "memory://"
