import pytest

# Shows the values of an assertion that fails.
pytest.register_assert_rewrite("service.testing.algorithms")
