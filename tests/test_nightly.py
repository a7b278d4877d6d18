"""The list of nightly tests names tests that there are."""

import ast

from tests.nightly import nightly_tests
from tests.places import REPOSITORY


def test_each_name_is_a_test_of_its_file() -> None:
    names = nightly_tests()
    assert names == sorted(set(names))
    for name in names:
        file, _, test = name.partition("::")
        tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
        assert test.partition("[")[0] in {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}, name
