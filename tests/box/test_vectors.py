# SPDX-License-Identifier: MIT
"""Every vector of the client's address, through the real loader, the real door and the real resolver."""
import json
import pathlib

import pytest

from questions import check_config

VECTORS = json.loads((pathlib.Path(__file__).parents[1] / "cases" / "client-address.json").read_text())


def config_of(vector):
    """The member "client": name is spelt strategy there, nothing else differs."""
    client = dict(vector["strategy"])
    if "name" in client:
        client["strategy"] = client.pop("name")
    return {"client": client}


def by_strategy(vectors):
    groups = {}
    for vector in vectors:
        groups.setdefault(json.dumps(vector["strategy"]), []).append(vector)
    return list(groups.values())


FAULTS = [group[0] for group in by_strategy(v for v in VECTORS if v["expect"]["reason"] == "config_error")]
GROUPS = by_strategy(v for v in VECTORS if v["expect"]["reason"] != "config_error")


def test_no_vector_is_left_out():
    assert len(VECTORS) == 322
    faulty = [v for v in VECTORS if v["expect"]["reason"] == "config_error"]
    assert len(faulty) + sum(map(len, GROUPS)) == 322
    assert all(v["expect"]["address"] is None for v in faulty)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0]["id"])
def test_address(postern, group):
    connection = postern(config_of(group[0])).connect()
    wrong = []
    for vector in group:
        # Characters above U+007F go as they are: UTF-8 in the body, one byte each in the eyes of the program.
        question = {"remote_addr": vector["peer"], "headers": vector["headers"]}
        body = json.dumps(question, ensure_ascii=False).encode()
        status, _, answer = connection.ask("POST", "/check", body, {"Content-Type": "application/json"})
        client = json.loads(answer).get("client", {}) if status == 200 else answer
        got = (status, client["address"], client["reason"]) if status == 200 else (status, client)
        if got != (200, vector["expect"]["address"], vector["expect"]["reason"]):
            wrong.append(f"{vector['id']}: {vector['expect']}, not {got} ({vector['why']})")
    connection.close()
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("vector", FAULTS, ids=lambda vector: vector["id"])
def test_refused_configuration(vector):
    done = check_config(config_of(vector))
    assert done.returncode == 3, f"{vector['why']}\n{done.said}"
    assert "/client" in done.said, done.said
