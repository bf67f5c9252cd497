"""The hosts' own deprecation notices are not ours to mend."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "adapters" in item.path.parts:
            item.add_marker(pytest.mark.filterwarnings("default"))
            item.add_marker(pytest.mark.plain)
