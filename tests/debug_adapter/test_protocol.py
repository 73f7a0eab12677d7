"""The framing of messages: what is taken, and that nothing else is."""

from __future__ import annotations

import io
import json

import pytest

from ptxdsl.debug_adapter.protocol import BadMessage, Connection


def connection(data: bytes) -> Connection:
    return Connection(io.BytesIO(data), io.BytesIO())


def test_messages_one_behind_the_other() -> None:
    first, second = {"seq": 1, "text": "ä\r\n\r\n"}, {"seq": 2}
    data = b""
    for message in (first, second):
        text = json.dumps(message, ensure_ascii=False).encode()
        data += b"content-length: %d\r\nContent-Type: application/vscode-jsonrpc\r\n\r\n" % len(text) + text
    taken = connection(data)
    assert [taken.read(), taken.read(), taken.read()] == [first, second, None]


def test_an_end_amid_a_message() -> None:
    assert connection(b"").read() is None
    assert connection(b"Content-Length: 9\r\n").read() is None
    assert connection(b'Content-Length: 9\r\n\r\n{"seq').read() is None


@pytest.mark.parametrize(("data", "message"), [
    (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "'POST / HTTP/1.1' is no header of the Debug Adapter Protocol"),
    (b"Content-Length: two\r\n\r\n{}", "Content-Length is 'two'"),
    (b"Content-Length: -1\r\n\r\n{}", "Content-Length is '-1'"),
    (b"Content-Length: 99999999999\r\n\r\n{}", "Content-Length is '99999999999'"),
    (b"Content-Length: 2\r\n\r\n[}", "the content is no JSON: Expecting value: line 1 column 2 (char 1)"),
    (b"Content-Length: 2\r\n\r\n[]", "the content is no object of JSON"),
    (b"Content-Type: x\r\n\r\n{}", "a message without a Content-Length"),
])
def test_what_is_no_message(data: bytes, message: str) -> None:
    with pytest.raises(BadMessage) as caught:
        connection(data).read()
    assert str(caught.value) == message


def test_what_is_sent() -> None:
    sent = io.BytesIO()
    one = Connection(io.BytesIO(), sent)
    one.event("output", output="ü\n")
    one.send("response", request_seq=3, success=True)
    back = connection(sent.getvalue())
    assert back.read() == {"seq": 1, "type": "event", "event": "output", "body": {"output": "ü\n"}}
    assert back.read() == {"seq": 2, "type": "response", "request_seq": 3, "success": True}
    sent.close()
    one.event("output", output="to nobody")
