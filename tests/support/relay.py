# SPDX-License-Identifier: MIT
"""Stands between a gateway and postern, passes bytes on, and counts connections."""
import socket
import threading

from postern import connect


def end(sockets):
    for sock in sockets:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # its peer was first


def received(sock):
    """What comes, piece by piece, until either side has had enough."""
    try:
        while data := sock.recv(65536):
            yield data
    except OSError:
        pass


class Relay:
    """endpoint      where to connect instead
    connections   how many there have been that carried anything
    lose          how many of the next answers do not arrive: their connections end instead
    mute          answers do not arrive, and nothing else does
    """

    def __init__(self, to):
        self._to = to
        self.connections = self.lose = 0
        self.mute = False
        self._lock = threading.Lock()
        self._open = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.endpoint = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        onward = connect(self._to)
        onward.settimeout(None)
        with self._lock:
            self._open.add((sock, onward))
        back = threading.Thread(target=self._pass_answers, args=(onward, sock), daemon=True)
        back.start()
        self._pass_questions(sock, onward)
        back.join()
        with self._lock:
            self._open.discard((sock, onward))
        sock.close()
        onward.close()

    def _pass_questions(self, source, sink):
        is_first = True
        for data in received(source):
            with self._lock:
                self.connections += is_first
            is_first = False
            sink.sendall(data)
        end((source, sink))

    def _pass_answers(self, source, sink):
        for data in received(source):
            with self._lock:
                lost = self.lose > 0
                self.lose -= lost
            if lost:
                break
            if not self.mute:
                sink.sendall(data)
        end((source, sink))

    def end_idle(self):
        """Ends every connection, as a server does that has waited long enough."""
        with self._lock:
            for pair in self._open:
                end(pair)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.end_idle()
