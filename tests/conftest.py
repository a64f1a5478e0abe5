"""What every test may use."""


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write golden files anew; look at the difference before committing")
