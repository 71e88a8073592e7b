# SPDX-License-Identifier: MIT
"""Real HAProxy with the files of deploy/gateways/haproxy."""
from behind import KEY, Behind, shipped
from gateway import HAProxy

LUA = "/etc/haproxy/postern.lua"


class TestHAProxy(Behind):
    # HAProxy 2.6 tries four times: a second between two connections that are refused, half a second for an answer.
    KILLED_S, STOPPED_S = 3, 2
    MAY_FIND_OUT_AT_ONCE = True
    ASKS_WHEN_MUTE = 4

    def gateway(self, postern, app, hops, net, edit):
        name = "one-hop.cfg" if hops == 1 else "two-hops.cfg"
        here = {"bind :8443": "bind {LISTEN}", "127.0.0.1:9180": postern, "127.0.0.1:8080": app, LUA: "postern.lua"}
        lua = shipped("haproxy/postern.lua", {})
        return HAProxy(edit(shipped(f"haproxy/{name}", here)), net.host, {"postern.lua": edit(lua)})

    def forgotten(self):
        lines = {
            "X-Forwarded-For": "	forwarded[#forwarded + 1] = txn.sf:src() -- HAProxy's own entry, always the last\n",
            "X-Forwarded-Method": '	headers["x-forwarded-method"] = { txn.sf:method() }\n',
            "X-Forwarded-Uri": '	headers["x-forwarded-uri"] = { txn.sf:pathq() }\n',
        }
        assert all(line in shipped("haproxy/postern.lua", {}) for line in lines.values())
        return {header: lambda text, line=line: text.replace(line, "") for header, line in lines.items()}

    def opened(self, text):
        assert " closed\n" in text
        return text.replace(" closed\n", " open\n")

    def keyed(self, text):
        return text.replace("local KEY = nil ", f'local KEY = "{KEY}" ')

    def over_unix(self, text, path):
        return text.replace("http://postern.invalid:9180", f"unix@{path}")
