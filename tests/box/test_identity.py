# SPDX-License-Identifier: MIT
"""Our own services: told by a token, exempt from the limits, and nobody else is counted differently."""
import pytest

from questions import AGENT, EDGE, FORGED, IDENTITIES, ask, one_limit, reasons, remaining, sha256

SHARED = "198.51.100.20:5000"


def guarded(require="identity", **more):
    """Like one_limit, with a rule in front that only our services pass."""
    config = one_limit(identities=IDENTITIES, **more)
    config["rules"].insert(
        0, {"name": "internal", "match": {"path": "/internal/*"}, "require": require, "limits": ["per-client"]}
    )
    return config


def test_a_token_passes_and_leaves_the_bucket_untouched(postern):
    p = postern(one_limit(identities=IDENTITIES))
    for _ in range(20):
        answer = ask(p, token=EDGE)
        assert (answer["decision"], answer["reason"], answer["status"]) == ("allow", "exempt", 200)
        assert (answer["identity"], answer["token"], answer["limits"]) == ("edge", "valid", [])
        assert answer["upstream_headers"]["X-Postern-Identity"] == "edge"
    assert remaining(p) == 5


def course(postern, **question):
    """What seven requests in a row are told, but for times."""
    told = []
    for _ in range(7):
        answer = ask(postern, **question)
        limits = [(entry["name"], entry["remaining"], entry.get("limited")) for entry in answer["limits"]]
        told.append((answer["decision"], answer["reason"], answer["status"], answer["identity"], answer["rule"], limits))
    return told


def test_five_pass_without_a_token(postern):
    p = postern(one_limit(identities=IDENTITIES))
    assert [step[1] for step in course(p)] == ["allowed"] * 5 + ["rate_limited"] * 2


@pytest.mark.parametrize(
    "shown",
    [FORGED, EDGE[:20], EDGE + "x", EDGE.upper(), "", " ", "x" * 60000, "postern_", "\u0000" + EDGE, EDGE + ",", "\u00ff" * 40],
    ids=lambda shown: f"{len(shown)}-{shown[-6:]!r}",
)
def test_a_wrong_token_is_an_ordinary_stranger(postern, shown):
    p = postern(one_limit(identities=IDENTITIES))
    stranger = course(p, remote_addr="203.0.113.1")
    assert course(p, remote_addr="203.0.113.2", token=shown) == stranger
    assert course(p, remote_addr="203.0.113.3", headers={"X-Internal-Token": shown}) == stranger
    assert course(p, remote_addr="203.0.113.4", headers={"Authorization": "Bearer " + shown}) == stranger


def test_require_refuses_and_charges_a_forged_token(postern):
    p = postern(guarded())
    for left in (4, 3, 2, 1, 0):
        answer = ask(p, token=FORGED, path="/internal/x")
        assert (answer["decision"], answer["reason"], answer["status"]) == ("deny", "identity_required", 401)
        assert answer["response_headers"]["WWW-Authenticate"] == "Bearer"
        assert answer["token"] == "unknown" and "retry_after" not in answer
        assert remaining(p, path="/other") == left
    answer = ask(p, token=FORGED, path="/internal/x")
    assert (answer["reason"], answer["status"]) == ("rate_limited", 429)
    assert "WWW-Authenticate" not in answer["response_headers"]
    assert ask(p, token=EDGE, path="/internal/x")["reason"] == "exempt"


def test_require_another_identity_charges_nothing(postern):
    p = postern(guarded(require=["agent"]))
    assert reasons(p, 8, token=EDGE, path="/internal/x") == ["identity_required"] * 8
    assert reasons(p, 8, token=AGENT, path="/internal/x") == ["exempt"] * 8
    assert remaining(p) == 5


def test_two_identities_and_strangers_at_one_address(postern):
    p = postern(one_limit(identities=IDENTITIES))
    for _ in range(10):
        assert ask(p, SHARED, token=EDGE)["identity"] == "edge"
        assert ask(p, SHARED, token=AGENT)["identity"] == "agent"
    assert reasons(p, 6, remote_addr=SHARED) == ["allowed"] * 5 + ["rate_limited"]
    assert ask(p, SHARED, token=EDGE)["reason"] == "exempt"
    assert ask(p, SHARED, token=AGENT)["reason"] == "exempt"
    assert remaining(p) == 5


def test_a_users_login_is_no_forged_token(postern):
    p = postern(one_limit(identities=IDENTITIES))
    for value in ("Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln", "Basic dXNlcjpwYXNz", "Bearer", "bearer abcdefgh"):
        answer = ask(p, headers={"Authorization": value})
        assert (answer["token"], answer["reason"]) == ("absent", "allowed"), value
        assert answer["remove_headers"] == ["X-Internal-Token"]


@pytest.mark.parametrize(
    "question, removed",
    [
        ({"token": EDGE}, ["X-Internal-Token"]),
        ({"headers": {"X-Internal-Token": EDGE}}, ["X-Internal-Token"]),
        ({"headers": {"x-internal-token": f" {EDGE}\t"}}, ["X-Internal-Token"]),
        ({"headers": {"Authorization": f"Bearer {EDGE}"}}, ["X-Internal-Token", "Authorization"]),
        ({"headers": {"AUTHORIZATION": f"bearer {EDGE}"}}, ["X-Internal-Token", "Authorization"]),
    ],
)
def test_where_a_token_may_stand(postern, question, removed):
    answer = ask(postern(one_limit(identities=IDENTITIES)), **question)
    assert (answer["token"], answer["identity"], answer["remove_headers"]) == ("valid", "edge", removed)


@pytest.mark.parametrize(
    "question, state",
    [
        ({"headers": [["X-Internal-Token", EDGE], ["X-Internal-Token", EDGE]]}, "ambiguous"),
        ({"headers": [["X-Internal-Token", EDGE], ["x-internal-token", "other"]]}, "ambiguous"),
        ({"headers": {"X-Internal-Token": f"{EDGE}, {EDGE}"}}, "ambiguous"),
        ({"token": f"{EDGE},"}, "ambiguous"),
        ({"token": "", "headers": {"X-Internal-Token": EDGE}}, "absent"),
        ({"token": FORGED, "headers": {"X-Internal-Token": EDGE}}, "unknown"),
        ({"headers": {"X-Internal-Token": FORGED, "Authorization": f"Bearer {EDGE}"}}, "unknown"),
        ({"headers": {"Authorization": f"Bearer {FORGED}"}}, "unknown"),
        ({"headers": {"X_Internal_Token": EDGE}}, "absent"),
    ],
)
def test_what_proves_nothing(postern, question, state):
    answer = ask(postern(one_limit(identities=IDENTITIES)), **question)
    assert (answer["token"], answer["identity"], answer["reason"]) == (state, None, "allowed")
    assert answer["limits"][0]["remaining"] == 4


def test_current_and_previous_token_from_files(postern):
    identities = {"edge": {"token_file": "now", "previous_token_file": "before"}, "agent": {"token_file": "agent",
        "previous_token_file": "never-was"}}  # fmt: skip
    files = {"now": EDGE + "\n", "before": FORGED, "agent": AGENT + "\r\n"}
    p = postern(one_limit(identities=identities), files=files)
    for token, name, slot in ((EDGE, "edge", "current"), (FORGED, "edge", "previous"), (AGENT, "agent", "current")):
        series = f'{{identity="{name}",slot="{slot}"}}'
        assert p.metrics()["postern_identity_token_last_used_timestamp_seconds" + series] == 0
        assert ask(p, token=token)["identity"] == name
        metrics = p.metrics()
        assert metrics["postern_identity_requests_total" + series] == 1
        assert metrics["postern_identity_token_last_used_timestamp_seconds" + series] > 1.7e9
    assert remaining(p) == 5


def test_an_identity_with_limits_of_its_own(postern):
    config = one_limit(identities={**IDENTITIES, "agent": {"token_sha256": sha256(AGENT), "limits": ["agents"]}})
    config["limits"]["agents"] = {"rate": "3/hour", "key": ["identity"]}
    p = postern(config)
    answers = [ask(p, f"203.0.113.{i}", token=AGENT) for i in range(4)]
    assert [a["reason"] for a in answers] == ["allowed"] * 3 + ["rate_limited"]
    assert [[entry["name"] for entry in a["limits"]] for a in answers] == [["agents"]] * 4
    assert all(a["identity"] == "agent" for a in answers)
    assert remaining(p, remote_addr="203.0.113.0") == 5
    assert ask(p, token=EDGE)["reason"] == "exempt"


def test_nobody_is_exempt_for_lacking_a_header(postern):
    p = postern(one_limit(identities=IDENTITIES))
    assert reasons(p, 6, remote_addr="10.0.0.1") == ["allowed"] * 5 + ["rate_limited"]
