# SPDX-License-Identifier: MIT
"""Asks postern over gRPC: the messages that its own build was made of, and a channel.

The classes are made from the descriptors in the build folder, in a pool of their own.
"""
import pathlib

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from postern import DEADLINE_S, PROGRAM

CHECK = "/envoy.service.auth.v3.Authorization/Check"
HEALTH = "/grpc.health.v1.Health/"
REFLECTION = "/grpc.reflection.{}.ServerReflection/ServerReflectionInfo"

FILES = descriptor_pb2.FileDescriptorSet.FromString((pathlib.Path(PROGRAM).parent / "gen" / "descriptors").read_bytes()).file
POOL = descriptor_pool.DescriptorPool()
for _file in FILES:
    POOL.Add(_file)
_factory = message_factory.MessageFactory(POOL)


def message_names(file, outer=None, prefix=""):
    """Names of all messages of a file descriptor within its package, nested ones too, but for the entries of maps."""
    for m in outer.nested_type if outer else file.message_type:
        if not m.options.map_entry:
            yield prefix + m.name
            yield from message_names(file, m, f"{prefix}{m.name}.")


def message(name):
    return _factory.GetPrototype(POOL.FindMessageTypeByName(name))


CheckRequest = message("envoy.service.auth.v3.CheckRequest")
CheckResponse = message("envoy.service.auth.v3.CheckResponse")
HealthCheckRequest = message("grpc.health.v1.HealthCheckRequest")
HealthCheckResponse = message("grpc.health.v1.HealthCheckResponse")


def check_request(remote_addr, path="/", method="GET", host="app.example", headers=(), raw=False):
    """headers: pairs in their order. As Envoy does it, the lines of one name are joined in a map; raw keeps them apart."""
    request = CheckRequest()
    request.attributes.source.address.socket_address.address = remote_addr
    request.attributes.source.address.socket_address.port_value = 40000
    http = request.attributes.request.http
    http.method, http.path, http.host = method, path, host
    lines = [(":method", method), (":path", path), (":authority", host), *headers]
    for name, value in lines:
        name = name.lower()
        if raw:
            http.header_map.headers.add(key=name, raw_value=value if isinstance(value, bytes) else value.encode("latin-1"))
        elif name in http.headers:
            http.headers[name] += "," + value
        else:
            http.headers[name] = value
    return request


class Decision:
    """What a CheckResponse says, as Envoy would read it."""

    def __init__(self, response):
        self.response = response
        self.allowed = response.status.code == 0
        assert response.HasField("status")
        assert self.allowed == response.HasField("ok_response") != response.HasField("denied_response")
        ok, denied = response.ok_response, response.denied_response
        self.status = 200 if self.allowed else denied.status.code
        self.body = denied.body
        self.client_headers = self._lines(ok.response_headers_to_add if self.allowed else denied.headers)
        self.upstream_headers = self._lines(ok.headers)
        self.removed = list(ok.headers_to_remove)
        self.metadata = {name: self._value(value) for name, value in response.dynamic_metadata.fields.items()}
        self.reason = self.metadata["reason"]

    @staticmethod
    def _lines(options):
        found = {}
        for option in options:
            assert option.HasField("append") and not option.append.value and option.append_action == 2, option
            assert option.header.key == option.header.key.lower() and option.header.key not in found
            found[option.header.key] = option.header.value
        return found

    @staticmethod
    def _value(value):
        if value.HasField("list_value"):
            return [item.string_value for item in value.list_value.values]
        return value.string_value


class Door:
    """A channel to a running postern. Closed by close."""

    def __init__(self, endpoint, options=()):
        self.endpoint = endpoint
        # A subchannel of its own: channels to one target share connections otherwise.
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0), *options]
        self.channel = grpc.insecure_channel(endpoint, options)

    def close(self):
        self.channel.close()

    def call(self, path, request, answer, metadata=(), timeout=DEADLINE_S, **options):
        method = self.channel.unary_unary(path, lambda m: m if isinstance(m, bytes) else m.SerializeToString(), answer.FromString)
        return method(request, metadata=metadata, timeout=timeout, **options)

    def check(self, *args, metadata=(), **kwargs):
        request = args[0] if args and isinstance(args[0], CheckRequest) else check_request(*args, **kwargs)
        return Decision(self.call(CHECK, request, CheckResponse, metadata))

    def health(self, service=""):
        return self.call(HEALTH + "Check", HealthCheckRequest(service=service), HealthCheckResponse).status

    def fails(self, path, request=b"", metadata=(), timeout=DEADLINE_S, **options):
        """The code and the message of a call that must fail."""
        try:
            answer = self.call(path, request, CheckResponse, metadata, timeout, **options)
        except grpc.RpcError as e:
            return e.code(), e.details()
        raise AssertionError(f"{path} answered {answer}")
