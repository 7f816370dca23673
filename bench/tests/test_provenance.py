"""Rows tell which commit made them, and whether they were changed afterwards."""

import json

from calibo_bench.provenance import is_intact, provenance, sealed, source_commit

ROW = {"problem": "p", "strategy": "a", "values": [0.1, 2.0], "commit": "abc", "error": None}


def test_a_seal_survives_json_and_shows_every_change():
    row = json.loads(json.dumps(sealed(ROW)))
    assert is_intact(row) is True
    for part, changed in (("strategy", "b"), ("values", [0.1, 2.1]), ("commit", "abd"), ("more", 1)):
        assert is_intact({**row, part: changed}) is False
    assert is_intact({**row, "strategy": "b", "seal": sealed(ROW)["seal"]}) is False, "a renamed row"
    assert is_intact(ROW) is None


def test_pages_tell_the_states_of_the_code():
    one = [sealed(ROW), sealed({**ROW, "strategy": "b"})]
    assert provenance(one) == "Made by one state of the code: commit abc."
    other = sealed({**ROW, "commit": "def+changes"})
    assert provenance([*one, other]) == "Made by 2 states of the code: commit abc (2), commit def+changes (1)."
    earlier = {"versions": {"calibo source": "123"}}
    assert provenance([earlier]).startswith("Made by one state of the code: source 123. 1 rows have no seal")
    edited = {**one[0], "values": [0.0]}
    assert "**1 rows were changed after they were written.**" in provenance([*one, edited])


def test_the_commit_is_that_of_this_checkout():
    assert source_commit() == source_commit() != ""
