"""What every test may use."""

from hypothesis import HealthCheck, settings

# a busy machine is no failure, and CI repeats itself: new examples are searched by `pytest --hypothesis-profile=search`
settings.register_profile("house", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write golden files anew; look at the difference before committing")
