# SPDX-License-Identifier: MIT
"""Real nginx with the files of deploy/gateways/nginx."""
import re

import pytest

from behind import Behind, shipped
from gateway import App, Nginx
from net import IPV4
from postern import run_postern
from questions import ask, one_limit
from relay import Relay


class TestNginx(Behind):
    def gateway(self, postern, app, hops, net, edit):
        name = "one-hop.conf" if hops == 1 else "two-hops.conf"
        here = {"listen 8443;": "listen {LISTEN};", "127.0.0.1:9180": postern, "127.0.0.1:8080": app}
        return Nginx(edit(shipped(f"nginx/{name}", here)), net.host)

    def forgotten(self):
        def without(header):
            def edit(text):
                less = re.sub(rf"\n\s*proxy_set_header {header} [^;]*;", "", text, count=1)
                assert less != text
                return less

            return edit

        return {header: without(header) for header in ("X-Real-IP", "X-Original-Method", "X-Original-URL")}

    def over_unix(self, text, path):
        return text.replace("server postern.invalid:9180;", f"server unix:{path};")

    # What a plain auth_request does: the client's headers are passed, its Content-Length with them, and no body comes.
    @staticmethod
    def bare(text):
        for line in ("proxy_pass_request_headers off;", "proxy_pass_request_body off;", 'proxy_set_header Content-Length "";'):
            assert line in text
            text = text.replace(line, "")
        return text

    def test_a_leaked_length_holds_nobody_up(self, site, postern):
        instance = postern(one_limit())
        with Relay(instance.http) as relay:
            s = site({}, to=relay.endpoint, edit=self.bare)
            for turn in range(1, 3):
                # Were the body waited for, nginx would have given up after 500 ms.
                assert s.send(IPV4.client(11), "POST", body=b"x" * 1000).status == 200
                # Its connection is closed; the next client's check is on one of its own, and is answered for that client.
                assert s.send(IPV4.client(12)).status == 200
                assert [request.all("X-Postern-Client") for request in s.app.requests[-2:]] == [[IPV4.client(11)], [IPV4.client(12)]]
                assert relay.connections == turn + 1
            left = [ask(instance, IPV4.client(n), peek=True)["limits"][0]["remaining"] for n in (11, 12, 13)]
            assert left == [3, 3, 5]

    def test_a_check_over_http_1_0(self, site):
        """What nginx speaks unless it is told otherwise: a connection a check, which postern ends."""
        s = site(one_limit("2/hour"), edit=lambda text: text.replace("proxy_http_version 1.1;", "", 1))
        assert [s.send(IPV4.client(11)).status for _ in range(3)] == [200, 200, 429]

    @pytest.mark.parametrize(
        "files, path, checks",
        [
            ("index index.html;", "/", 2),
            ("try_files $uri /fallback.html;", "/missing", 2),
            ("try_files $uri @named;", "/missing", 1),
            ("try_files $uri =404;", "/index.html", 1),
        ],
    )
    def test_internal_redirects_ask_again(self, site, tmp_path, files, path, checks):
        for name in ("index.html", "fallback.html"):
            (tmp_path / name).write_text(name)
        tmp_path.chmod(0o755)

        def edit(text):
            less = re.sub(r"(?m)^\t\tproxy_pass http://127[^;]*;", f"root {tmp_path}; {files}", text)
            assert less != text
            return less.replace("location @postern_down", "location @named { return 200 named; } location @postern_down")

        s = site(one_limit(), edit=edit)
        assert s.send(IPV4.client(11), path=path).status == 200
        assert self.left(s, IPV4.client(11), 1, IPV4) == 5 - checks

    def test_a_host_cannot_hide_the_path(self, site):
        config = one_limit()
        config["rules"].insert(0, {"name": "closed", "match": {"path": "/closed/*"}, "action": "deny"})
        s = site(config)
        for host in ("a.example", "a?b", "a#b", "a@b", "a:8443", "[::1]:80"):
            assert s.send(IPV4.client(11), path="/closed/x", headers=[f"Host: {host}"]).status == 403, host
        assert s.send(IPV4.client(11), path="http://other.example/closed", headers=["Host: a.example"]).status == 403
        assert s.app.requests == []

    @pytest.mark.parametrize("hops", (1, 2))
    def test_the_host_that_is_judged_is_the_host_that_is_served(self, site, hops):
        """A request line may name a host beside the Host header: nginx judges by the one, so the application must not get the other."""
        config = one_limit()
        config["rules"].insert(0, {"name": "closed", "match": {"host": "a.example"}, "action": "deny"})
        s = site(config, hops)
        s.endpoint = s.gateway.endpoint  # straight at the one that asks
        for target in ("/x", "http://b.example/x", "http://a.example/x"):
            for host in ("a.example", "b.example", "a.example:8443"):
                s.send(IPV4.client(11), path=target, headers=[f"Host: {host}"])
        assert not [r.all("Host") for r in s.app.requests if any("a.example" in h for h in r.all("Host"))]
        assert s.send(IPV4.client(11), path="/x", headers=["Host: b.example:8443"]).status == 200
        assert s.app.requests[-1].all("Host") == ["b.example:8443"]

    def test_the_probe_finds_a_header_that_only_clients_write(self, site):
        """Without it the door refuses, and with it a client is whoever it likes: the second is the worse news."""
        s = site(one_limit("50/hour"), edit=lambda text: text.replace("X-Real-IP $remote_addr;", "X-Real-IP $http_x_real_ip;"))
        done = run_postern("probe", f"http://{s.endpoint}/", "--admin", s.postern.admin)
        assert done.returncode == 5
        assert "a client can choose its key with X-Real-IP" in done.stdout, done.stdout

    def test_the_probes_cure_names_the_header_that_is_configured(self, site):
        named = {"strategy": "named_header", "header": "CF-Connecting-IP", "trusted_proxies": ["127.0.0.0/8"]}
        s = site(one_limit("50/hour", client=named))
        done = run_postern("probe", f"http://{s.endpoint}/", "--admin", s.postern.admin)
        assert done.returncode == 5
        cure = done.stdout.partition("cure: ")[2].partition("sent from")[0]
        assert "CF-Connecting-IP" in cure and "X-Forwarded-For" not in cure, done.stdout

    @pytest.mark.parametrize("status", (401, 403, 429, 500, 503))
    def test_the_applications_own_refusals_stay_its_own(self, site, status):
        s = site(one_limit(), app=App(lambda request: (status, [("X-Own", "1")], b"own")))
        answer = s.send(IPV4.client(11))
        assert (answer.status, answer.body, answer.get("X-Own"), answer.get("Retry-After")) == (status, b"own", "1", None)
