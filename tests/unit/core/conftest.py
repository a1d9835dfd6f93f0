"""Property tests are judged by what they find, not by how long it takes on a busy machine."""

from hypothesis import HealthCheck, settings

settings.register_profile("unhurried", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
