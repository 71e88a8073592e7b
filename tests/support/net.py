# SPDX-License-Identifier: MIT
"""Addresses to come from and to listen on. IPv4 has all of 127.0.0.0/8; for IPv6 a network namespace is made whose loopback
has global addresses, since there is only one address in ::1/128, and some gateways take that one for themselves.

A namespace belongs to a thread, and to every thread and process that this one starts afterwards: what a test starts while
it is in one lives there, sockets included. It needs root, and neither ip nor any other tool.
"""
import contextlib
import ctypes
import fcntl
import os
import socket
import struct

import pytest

CLONE_NEWNET = 0x40000000
SIOCSIFADDR, SIOCSIFFLAGS = 0x8916, 0x8914
IFF_UP, IFF_RUNNING = 0x1, 0x40


class Net:
    """host: what gateways listen on; hop: the proxy in front of one; client(n): addresses that are strangers to each other."""

    def __init__(self, family, host, hop, clients):
        self.family, self.host, self.hop, self._clients = family, host, hop, clients

    def client(self, n):
        return self._clients % n

    @property
    def listen(self):
        """host as it stands in front of a port."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def hop_range(self):
        return self.hop + ("/128" if ":" in self.hop else "/32")


IPV4 = Net("ipv4", "127.0.0.1", "127.0.0.7", "127.0.0.%d")
# Clients lie in networks of their own: a /64 is one client.
IPV6 = Net("ipv6", "2001:db8::1", "2001:db8::7", "2001:db8:0:%d::5")
CLIENTS = range(11, 20)


def _raise_errno(result):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _set_up_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP | IFF_RUNNING))
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        for address in (IPV6.host, IPV6.hop, *map(IPV6.client, CLIENTS)):
            packed = socket.inet_pton(socket.AF_INET6, address)
            fcntl.ioctl(sock, SIOCSIFADDR, struct.pack("=16sIi", packed, 128, socket.if_nametoindex("lo")))


@contextlib.contextmanager
def inside(net):
    """For IPv6 a namespace of its own, for IPv4 nothing. Without the rights for it the test is skipped, and fails where
    CI=true."""
    if net is IPV4:
        yield net
        return
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        try:
            _raise_errno(libc.unshare(CLONE_NEWNET))
        except OSError as e:
            why = f"no network namespace for IPv6 addresses: {e.strerror} (it takes root)"
            pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
        try:
            _set_up_loopback()
            yield net
        finally:
            _raise_errno(libc.setns(before, CLONE_NEWNET))
    finally:
        os.close(before)
