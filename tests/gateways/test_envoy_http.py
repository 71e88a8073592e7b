# SPDX-License-Identifier: MIT
"""Real Envoy, asking over HTTP, with the files of deploy/gateways/envoy."""
from behind import Behind, shipped
from gateway import Envoy
from net import IPV4
from postern import split_endpoint
from questions import ask, one_limit


def socket_address(endpoint):
    host, port = split_endpoint(endpoint)
    return f"address: {host}, port_value: {port}"


class TestEnvoyHttp(Behind):
    REFUSED_FORGERIES = ("dropped on the way",)  # a Connection line that names X-Forwarded-For
    ASKS_WHEN_LOST = 1
    STRIPS_UNJUDGED = False  # it knows no condition on Authorization

    def gateway(self, postern, app, hops, net, edit):
        name = "one-hop-http.yaml" if hops == 1 else "two-hops-http.yaml"
        here = {
            'address: "0.0.0.0", port_value: 8443': 'address: "{HOST}", port_value: {PORT}',
            "address: 127.0.0.1, port_value: 9180": socket_address(postern),
            "address: 127.0.0.1, port_value: 8080": socket_address(app),
        }
        return Envoy(edit(shipped(f"envoy/{name}", here)), net.host)

    def forgotten(self):
        line = '                            - {key: x-postern-remote-addr, value: "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%"}\n'

        def edit(text):
            assert line in text
            return text.replace("headers_to_add:\n", "headers_to_add: []\n", 1).replace(line, "", 1)

        return {"X-Postern-Remote-Addr": edit}

    def opened(self, text):
        assert "failure_mode_allow: false" in text
        return text.replace("failure_mode_allow: false", "failure_mode_allow: true")

    def over_unix(self, text, path):
        written = "{socket_address: {address: postern.invalid, port_value: 9180}}"
        assert written in text
        return text.replace(written, "{pipe: {path: %s}}" % path)

    def test_every_path_of_the_application_is_a_check(self, site):
        """None is answered by postern itself, whatever it is called."""
        paths = ["/livez", "/readyz", "/metrics", "/check", "/forward-auth", "/auth-request", "/ext-authz/x", "/ext-authz", "/robots.txt", "/"]
        s = site(one_limit(f"{len(paths)}/hour"))
        for path in paths:
            answer = s.send(IPV4.client(11), path=path)
            assert (answer.status, s.app.requests[-1].path) == (200, path)
        for path in paths:
            assert s.send(IPV4.client(11), path=path).status == 429
        assert len(s.app.requests) == len(paths)

    def test_rules_see_method_path_and_host_of_the_request(self, site):
        config = one_limit()
        config["rules"].insert(0, {"name": "a", "match": {"method": "DELETE", "host": "a.example", "path": "/x/*"}, "action": "deny"})
        s = site(config)
        host = ["Host: A.example:8443"]
        assert s.send(IPV4.client(11), "DELETE", "/x/y?z", headers=host).status == 403
        assert s.send(IPV4.client(11), "DELETE", "/%78//y/", headers=host).status == 403
        assert s.send(IPV4.client(11), "POST", "/x/y", headers=host).status == 200
        assert s.send(IPV4.client(11), "DELETE", "/x/y", headers=["Host: b.example"]).status == 200

    def test_the_last_forwarded_entry_where_no_header_can_be_added(self, site):
        """doors.ext_authz.remote_addr: xff_last, and then the header is nobody's word."""

        def edit(text):
            text = self.forgotten()["X-Postern-Remote-Addr"](text)
            # The header is let through here, which no file of ours does, to show that it is not read.
            text = text.replace("                          - remove: x-postern-remote-addr\n", "")
            return text.replace("patterns: [", "patterns: [{exact: x-forwarded-for}, {exact: x-postern-remote-addr}, ", 1)

        s = site(one_limit(doors={"ext_authz": {"remote_addr": "xff_last"}}), edit=edit)
        for forged in ([], ["X-Forwarded-For: 6.6.6.6"], ["X-Postern-Remote-Addr: 6.6.6.6"]):
            assert s.send(IPV4.client(11), headers=forged).status == 200
            assert s.app.requests[-1].all("X-Postern-Client") == [IPV4.client(11)]
        (limit,) = ask(s.postern, IPV4.client(11), peek=True)["limits"]
        assert limit["remaining"] == 2
