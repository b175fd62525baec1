# SPDX-License-Identifier: GPL-2.0-only
"""A web server for lists, with HTTPS and a certificate authority of its own, on the far side of a lab."""
import contextlib
import gzip
import hashlib
import http.server
import socket
import ssl
import threading
import time

from labnet import run, socket_in

PORT = 8443
PAGE = b"<html><body>Sorry</body></html>"


class Authority:
    """Certificates for an address: authority.path is what clients trust."""

    def __init__(self, folder, address="10.77.0.2"):
        folder.mkdir(exist_ok=True)
        self.folder, self.address = folder, address
        self.path = folder / "ca.pem"
        run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-keyout", folder / "ca.key", "-out", self.path, "-days", "30", "-subj", "/CN=lab authority"])

    def certificate(self, name, days=30, names=None):
        """For the address, or for other names ("DNS:feed.lab")."""
        key, request, cert = (self.folder / f"{name}.{kind}" for kind in ("key", "csr", "pem"))
        subject = self.folder / "names"
        subject.write_text(f"subjectAltName={names or f'IP:{self.address}'}\n")
        run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
             "-out", request, "-subj", "/CN=lab"])
        run(["openssl", "x509", "-req", "-in", request, "-CA", self.path, "-CAkey", self.folder / "ca.key",
             "-CAcreateserial", "-days", str(days), "-extfile", subject, "-out", cert])
        return cert, key


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        self.request.settimeout(30)
        super().setup()

    def do_GET(self):  # pylint: disable=invalid-name
        feed = self.server.feed
        feed.requests.append(dict(self.headers))
        feed.answer(self)

    def log_message(self, *args):  # pylint: disable=arguments-differ
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, sock, feed):
        self.context = None
        super().__init__(("", 0), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket, self.feed = sock, feed

    def get_request(self):
        sock, address = self.socket.accept()
        sock.settimeout(5)
        self.feed.clients += 1
        return self.feed.context.wrap_socket(sock, server_side=True), address

    def handle_error(self, request, client_address):
        pass


class TlsServer:
    """Answers each request over TLS with 200, on all addresses of a host, with the certificate of use()."""

    def __init__(self, netns, port=8443):
        self.context, self.names = None, set()  # names: of SNI
        self.socket = socket_in(netns, socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("", port))
        self.socket.listen(64)
        threading.Thread(target=self.serve, daemon=True).start()

    def use(self, cert, key):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        context.sni_callback = lambda _, name, __: self.names.add(name)
        self.context = context

    def serve(self):
        while True:
            try:
                connection = self.socket.accept()[0]
            except OSError:
                return
            with contextlib.suppress(OSError), connection:
                connection.settimeout(1)
                with self.context.wrap_socket(connection, server_side=True) as tls:
                    tls.recv(4096)
                    tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def stop(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Feed:
    """feed.body is what the server has; feed.mode what is wrong: "404" and "500", "html" (a page with
    status 200), "type" (the same, packed), "cut" (of the packed text), "short" (of the body), "bomb", "slow"; "br" (named so, and
    not packed); or "file": the body is sent as it is.
    Without feed.tagged the server has no ETag."""

    def __init__(self, pair, folder):
        self.authority = Authority(folder, pair.far4)
        self.netns, self.address = pair.far_netns, pair.far4
        self.url = f"https://{self.address}:{PORT}/list"
        self.ca = self.authority.path
        self.body, self.mode, self.tagged, self.requests = b"", "", True, []
        self.clients = 0  # also those that do not like the certificate
        self.packed = None, b""  # the last one, of
        self.redirect = None  # where the first host sends its clients
        self.server = self.context = None
        self.use(*self.authority.certificate("good"))
        self.start()

    def use(self, cert, key):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.context = context

    def start(self):
        sock = socket_in(self.netns, socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((self.address, PORT))
        sock.listen(16)
        self.server = Server(sock, self)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def lines(self, count, first=0):
        """A list of that many addresses."""
        self.body = b"".join(b"100.%d.%d.%d\n" % (64 + (n >> 16), n >> 8 & 255, n & 255)
                             for n in range(first, first + count))

    def answer(self, handler):
        tag = f'"{hashlib.sha256(self.body).hexdigest()[:16]}"'
        if self.redirect and handler.headers["Host"] not in self.redirect:
            handler.send_response(302)
            handler.send_header("Location", self.redirect)
            handler.send_header("Content-Length", "0")
            return handler.end_headers()
        if self.mode.isdigit():
            return handler.send_error(int(self.mode))
        if self.mode == "file":
            return self.send(handler, self.body, len(self.body))
        if self.mode == "br":
            return self.send(handler, self.body, len(self.body), "br")
        if self.mode == "html":
            return self.send(handler, PAGE, len(PAGE))
        if self.mode == "" and handler.headers.get("If-None-Match") == tag:
            handler.send_response(304)
            handler.send_header("ETag", tag)
            return handler.end_headers()
        packed = self.pack(PAGE if self.mode == "type" else bytes(64 << 20) if self.mode == "bomb" else self.body)
        if self.mode == "cut":
            packed = packed[:len(packed) // 2]
        handler.send_response(200)
        if self.tagged:
            handler.send_header("ETag", tag)
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(packed)))
        handler.end_headers()
        if self.mode == "slow":
            return self.drip(handler, packed)
        if self.mode == "short":
            handler.close_connection = True
            packed = packed[:len(packed) // 2]
        return handler.wfile.write(packed)

    def pack(self, body):
        if self.packed[0] != body:
            self.packed = body, gzip.compress(body, 1)
        return self.packed[1]

    @staticmethod
    def send(handler, body, size, encoding=None):
        handler.send_response(200)
        if encoding:
            handler.send_header("Content-Encoding", encoding)
        handler.send_header("Content-Type", "text/html")
        handler.send_header("Content-Length", str(size))
        handler.end_headers()
        handler.wfile.write(body)

    def drip(self, handler, body):
        for at in range(0, len(body), 10):
            if self.mode != "slow":
                return
            handler.wfile.write(body[at:at + 10])
            handler.wfile.flush()
            time.sleep(0.1)
