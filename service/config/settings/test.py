"""Settings of tests. tests/conftest.py fills in the database's address when the first test needs it."""

from service.config.settings.base import *

DATABASES = {"default": database("postgresql:///trimtab")}
SECRET_KEY = "only-for-tests"
ALLOWED_HOSTS = ["*"]
TRIMTAB_ADMIN_TOKEN = "test-token"
TRIMTAB_ADMIN_TOKEN_FILE = ""
# Each test has its own rows, so principals are not cached between tests.
TRIMTAB_TRUST_SECONDS = 0.0
# Messages stay in this process and no worker takes them. A test calls a task itself.
CELERY_BROKER_URL = "memory://"
# The process of a test has loaded nothing before its first suggestion, and there is no other for slow ones.
TRIMTAB_OPERATION_QUICK_CPU_SECONDS = TRIMTAB_OPERATION_CPU_SECONDS
