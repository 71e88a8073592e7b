# SPDX-License-Identifier: MIT
"""Fixtures that several folders of tests share; their conftest.py imports them from here."""
import pytest

from postern import Postern


def clean_all(things):
    """Cleans up every one of them, also where one fails; the first failure is raised at the end."""
    failure = None
    for thing in reversed(things):
        try:
            thing.cleanup()
        except BaseException as e:
            failure = failure or e
    if failure is not None:
        raise failure


@pytest.fixture
def postern():
    """postern(config, args=[...]) starts one and gives it. At the end of the test each must stop cleanly."""
    started = []

    def start(config=None, **options):
        instance = Postern(config, **options)
        started.append(instance)
        return instance.start()

    yield start
    clean_all(started)
