"""Run a flow of paho-mqtt against a broker: paho-flows.py FLOW OPTIONS (see flows.py)"""
import json
import queue
import sys
import time

import paho.mqtt.client as mqtt
import paho.mqtt.publish as publish_helpers
import paho.mqtt.subscribe as subscribe_helpers
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from flows import NOTHING_SEC, OPTIONS, PATIENCE_SEC, VERSION, ask, code_of, properties


class Peer:
    """A client that runs in a thread and keeps what it is notified of."""

    def __init__(self, client_id, kept=False, port=None, transport="tcp", keepalive=60, login=None, will=None, manual=False, **connect):
        client_id = client_id and f"{client_id}-{VERSION}"
        session = {} if VERSION == 5 else {"clean_session": not kept}
        over = {"tcp": "tcp", "tls": "tcp"}.get(transport, "websockets")
        self.client = client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, client_id, protocol=mqtt.MQTTProtocolVersion(VERSION), transport=over, manual_ack=manual, **session
        )
        self.messages = queue.Queue()
        self.events = {name: queue.Queue() for name in ("connect", "disconnect", "subscribe", "unsubscribe", "publish")}
        client.on_message = lambda _client, _data, message: self.messages.put(message)
        client.on_connect = lambda _c, _d, flags, code, props: self.events["connect"].put((flags, code, props))
        client.on_disconnect = lambda _c, _d, _flags, code, props: self.events["disconnect"].put((code, props))
        client.on_subscribe = lambda _c, _d, _mid, codes, _props: self.events["subscribe"].put(codes)
        client.on_unsubscribe = lambda _c, _d, _mid, codes, _props: self.events["unsubscribe"].put(codes)
        client.on_publish = lambda _c, _d, mid, code, _props: self.events["publish"].put((mid, code))
        client.reconnect_delay_set(0.02, 0.5)
        client.max_queued_messages_set(0)
        if transport in ("tls", "wss"):
            client.tls_set(OPTIONS["ca"])
        if over == "websockets":
            client.ws_set_options(path="/mqtt")
        if login:
            client.username_pw_set(*login)
        if will:
            client.will_set(**will)
        if VERSION == 5:
            if kept:
                connect.setdefault("SessionExpiryInterval", 300)
            self.arguments = {
                "clean_start": False if kept == "resumed" else mqtt.MQTT_CLEAN_START_FIRST_ONLY,
                "properties": properties(PacketTypes.CONNECT, **connect),
            }
        else:
            self.arguments = {}
        self.port = port or OPTIONS["ports"][transport]
        self.keepalive = keepalive

    def start(self):
        self.client.connect("localhost", self.port, self.keepalive, **self.arguments)
        self.client.loop_start()
        return self.event("connect")

    def event(self, name):
        return self.events[name].get(timeout=PATIENCE_SEC)

    def subscribe(self, *arguments, **named):
        self.client.subscribe(*arguments, **named)
        return self.event("subscribe")

    def publish(self, *arguments, **named):
        info = self.client.publish(*arguments, **named)
        info.wait_for_publish(PATIENCE_SEC)
        assert info.is_published()
        return info

    def message(self):
        return self.messages.get(timeout=PATIENCE_SEC)

    def nothing(self):
        try:
            message = self.messages.get(timeout=NOTHING_SEC)
        except queue.Empty:
            return
        raise AssertionError(f"unexpected message {message.topic} {message.payload}")

    def stop(self, **named):
        self.events["disconnect"] = queue.Queue()  # without those of connections that were lost
        self.client.disconnect(**named)
        code, _ = self.event("disconnect")
        self.client.loop_stop()
        assert code == "Success" or code == 0, code

    def cut(self):
        """End the connection without DISCONNECT."""
        self.client.loop_stop()
        self.client._sock_close()

    def __enter__(self):
        flags, code, _ = self.start()
        assert not code.is_failure, code
        return self

    def __exit__(self, *error):
        self.stop()


def assert_present(flags, is_present):
    """Check Session Present, which CONNACK of MQTT 3.1 does not have."""
    assert flags.session_present == (is_present and VERSION != 3)


def exchange():
    """Messages of each QoS in both directions, with sequence numbers."""
    transport = OPTIONS.get("transport", "tcp")
    count = 300
    with Peer("exchange-a", transport=transport) as a, Peer("exchange-b", transport=transport) as b:
        for peer, other in ((a, "b"), (b, "a")):
            codes = peer.subscribe([(f"from/{other}/{qos}", qos) for qos in (0, 1, 2)])
            assert [code_of(code) for code in codes] == [0, 1, 2], codes
        for peer, name in ((a, "a"), (b, "b")):
            for at in range(count):
                for qos in (0, 1, 2):
                    peer.client.publish(f"from/{name}/{qos}", str(at), qos)
        for peer, other in ((a, "b"), (b, "a")):
            seen = {}
            for _ in range(3 * count):
                message = peer.message()
                assert message.topic == f"from/{other}/{message.qos}", message.topic
                assert not message.retain
                seen.setdefault(message.qos, []).append(int(message.payload))
            for qos in (0, 1, 2):
                assert seen[qos] == list(range(count)), (qos, seen[qos])
        a.nothing()
        b.nothing()


def sessions():
    """A session with its subscriptions and messages is kept, and a clean one is not."""
    kept = Peer("sessions", kept=True)
    flags, code, _ = kept.start()
    assert_present(flags, False)
    kept.subscribe([("kept/1", 1), ("kept/2", 2)])
    kept.stop()
    with Peer("sessions-publisher") as publisher:
        for qos in (1, 2):
            for at in range(20):
                publisher.publish(f"kept/{qos}", str(at), qos)
    resumed = Peer("sessions", kept="resumed")
    flags, _, _ = resumed.start()
    assert_present(flags, True)
    seen = [resumed.message() for _ in range(40)]
    for qos in (1, 2):
        assert [int(m.payload) for m in seen if m.topic == f"kept/{qos}" and m.qos == qos] == list(range(20))
    resumed.nothing()
    resumed.stop()
    clean = Peer("sessions")
    flags, _, _ = clean.start()
    assert_present(flags, False)
    clean.publish("kept/1", "x", 1)
    clean.nothing()
    clean.stop()
    again = Peer("sessions", kept="resumed")
    flags, _, _ = again.start()
    assert_present(flags, False)
    again.nothing()
    again.stop()


def resume():
    """Connections that are cut in the middle of QoS 1 and 2 exchanges: prints what the subscriber has received."""
    qos, count = OPTIONS["qos"], OPTIONS["count"]
    topic = f"resume/{qos}"
    subscriber = Peer("resume-subscriber", kept=True, port=OPTIONS["subscriber"])
    publisher = Peer("resume-publisher", kept=True, port=OPTIONS["publisher"])
    # with a limit (20 by default), paho-mqtt 2.2 forgets on reconnect that it has sent PUBREL for messages beyond the limit, and sends
    # PUBLISH again (`_messages_reconnect_reset_out`), which makes them new messages for a broker [MQTT-4.3.3-6]
    publisher.client.max_inflight_messages_set(0)
    subscriber.start()
    assert [code_of(code) for code in subscriber.subscribe(topic, qos)] == [qos]
    publisher.start()
    seen = []
    for at in range(count):
        # if a connection ends before its CONNACK, paho-mqtt 2.2 sends PUBLISH again for messages whose PUBREL it has sent, so nothing is
        # published, and no connection ends, before CONNACK. Messages are left for the connections of the subscriber that are cut later
        while not publisher.client.is_connected() or len(set(seen)) < at - 20:
            time.sleep(0.001)
            seen += received(subscriber)
        publisher.client.publish(topic, str(at), qos)
        time.sleep(0.002)
    while len(set(seen)) < count:
        seen.append(int(subscriber.message().payload))
    for _ in range(count):
        publisher.event("publish")
    time.sleep(1)
    print(json.dumps(seen + received(subscriber)))
    publisher.stop()
    subscriber.stop()


def received(peer):
    """Take the numbers of the messages that have arrived."""
    return [int(peer.messages.get().payload) for _ in range(peer.messages.qsize())]


def restart():
    """A client reconnects on its own when the broker has been restarted with its state."""
    peer = Peer("restart", kept=True)
    peer.start()
    peer.subscribe("restart/#", 1)
    peer.publish("restart/kept", "before", 1, retain=True)
    assert peer.message().payload == b"before"
    ask("stop")
    code, _ = peer.event("disconnect")
    assert code_of(code) == 0x8B if VERSION == 5 else code.is_failure, code  # Server shutting down
    peer.event("publish")
    peer.client.publish("restart/1", "while it is stopped", 1)
    ask("start")
    flags, _, _ = peer.event("connect")
    assert_present(flags, True)
    peer.event("publish")
    message = peer.message()
    if message.dup and message.payload == b"before":  # the broker was stopped before it had received the acknowledgement
        message = peer.message()
    assert message.payload == b"while it is stopped"
    peer.subscribe("restart/kept", 1)
    message = peer.message()
    assert message.payload == b"before" and message.retain
    peer.publish("restart/kept", None, 1, retain=True)
    peer.stop()


def wills():
    """A will is published when a connection is lost, and not after DISCONNECT."""
    with Peer("wills-watcher") as watcher:
        watcher.subscribe("wills/#", 2)
        for qos in (0, 1, 2):
            lost = Peer("wills-lost", will={"topic": f"wills/{qos}", "payload": "lost", "qos": qos, "retain": qos == 1})
            lost.start()
            lost.cut()
            message = watcher.message()
            assert (message.topic, message.payload, message.qos) == (f"wills/{qos}", b"lost", qos)
        watcher.subscribe("wills/1", 0)
        message = watcher.message()
        assert message.retain and message.payload == b"lost"
        watcher.publish("wills/1", None, 1, retain=True)
        assert watcher.message().payload == b""
        polite = Peer("wills-polite", will={"topic": "wills/polite", "payload": "lost"})
        polite.start()
        polite.stop()
        watcher.nothing()
        # a client that no longer sends anything: the broker closes its connection after 1.5 times the keep alive
        silent = Peer("wills-silent", keepalive=1, will={"topic": "wills/silent", "payload": "silent"})
        silent.start()
        silent.client.loop_stop()
        assert watcher.message().payload == b"silent"
        if VERSION == 5:
            will = {"topic": "wills/asked", "payload": "asked"}
            asked = Peer("wills-asked", will=will)
            asked.start()
            asked.stop(reasoncode=ReasonCode(PacketTypes.DISCONNECT, identifier=4))
            assert watcher.message().payload == b"asked"
            will["properties"] = properties(PacketTypes.WILLMESSAGE, WillDelayInterval=1, UserProperty=("a", "b"), ContentType="text/plain")
            delayed = Peer("wills-delayed", kept=True, will=will)
            delayed.start()
            since = time.monotonic()
            delayed.cut()
            message = watcher.message()
            assert time.monotonic() - since > 0.9
            assert message.properties.UserProperty == [("a", "b")] and message.properties.ContentType == "text/plain"
            cancelled = Peer("wills-delayed", kept="resumed", will={**will, "topic": "wills/second"})
            cancelled.start()
            cancelled.cut()
            back = Peer("wills-delayed", kept="resumed")
            back.start()
            try:
                watcher.messages.get(timeout=1.5)
                raise AssertionError("a will was published though its session was resumed")
            except queue.Empty:
                back.stop()


def retained():
    """Retained messages arrive with a subscription, are replaced and deleted."""
    with Peer("retained-publisher") as publisher, Peer("retained-subscriber") as subscriber:
        for qos in (0, 1, 2):
            publisher.publish(f"retained/{qos}", "first", qos, retain=True)
            publisher.publish(f"retained/{qos}", "second", qos, retain=True)
        publisher.publish("retained/0", "live", 1)
        subscriber.subscribe("retained/+", 2)
        seen = sorted((m.topic, m.payload, m.qos, m.retain) for m in (subscriber.message() for _ in range(3)))
        assert seen == [(f"retained/{qos}", b"second", qos, True) for qos in (0, 1, 2)], seen
        for qos in (0, 1, 2):
            publisher.publish(f"retained/{qos}", None, qos, retain=True)
            message = subscriber.message()
            assert message.payload == b"" and not message.retain
        with Peer("retained-late") as late:
            late.subscribe("retained/#", 2)
            late.nothing()
        if VERSION == 5:
            publisher.publish("retained/options", "kept", 1, retain=True)
            assert subscriber.message().retain is False
            for handling, arrives in ((0, 2), (1, 1), (2, 0)):
                with Peer("retained-options") as peer:
                    for _ in range(2):
                        options = SubscribeOptions(qos=1, retainAsPublished=True, retainHandling=handling)
                        peer.subscribe("retained/options", options=options)
                    for _ in range(arrives):
                        assert peer.message().retain
                    peer.nothing()
                    publisher.publish("retained/options", "again", 1, retain=True)
                    assert peer.message().retain
                    assert subscriber.message().payload == b"again"
            publisher.publish("retained/options", None, 1, retain=True)


def filters():
    """Wildcards, overlapping and shared subscriptions, and UNSUBSCRIBE."""
    with Peer("filters-publisher") as publisher, Peer("filters-subscriber") as subscriber:
        matching = {"a/+/c": ["a/b/c", "a//c"], "a/#": ["a", "a/b/c/d"], "+/+": ["/x", "ä/ö"]}
        for topic_filter, topics in matching.items():
            subscriber.subscribe(topic_filter, 1)
            for topic in topics:
                publisher.publish(topic, topic_filter, 1)
                message = subscriber.message()
                assert (message.topic, message.payload.decode()) == (topic, topic_filter)
            subscriber.nothing()
            subscriber.client.unsubscribe(topic_filter)
            subscriber.event("unsubscribe")
            publisher.publish(topics[0], "unsubscribed", 1)
        subscriber.nothing()
        subscriber.subscribe("#", 0)
        subscriber.subscribe("+/monitor/Clients", 0)
        publisher.publish("$other/monitor/Clients", "x", 1)
        subscriber.nothing()
        members = [Peer(f"filters-member-{at}") for at in range(3)]
        for member in members:
            member.start()
            member.subscribe("$share/group/jobs/+", 1)
        for at in range(90):
            publisher.publish(f"jobs/{at % 7}", str(at), 1)
        done = []
        deadline = time.monotonic() + PATIENCE_SEC
        while len(done) < 90 and time.monotonic() < deadline:
            done += [int(member.messages.get().payload) for member in members if not member.messages.empty()]
            time.sleep(0.001)
        assert sorted(done) == list(range(90)), sorted(done)
        for member in members:
            member.nothing()
            member.stop()


def helpers():
    """The functions of paho.mqtt.publish and paho.mqtt.subscribe."""
    where = {"hostname": "localhost", "port": OPTIONS["ports"]["tcp"], "protocol": mqtt.MQTTProtocolVersion(VERSION)}
    publish_helpers.single("helpers/1", "one", qos=1, retain=True, **where)
    publish_helpers.multiple([{"topic": "helpers/2", "payload": "two", "qos": 2, "retain": True}, ("helpers/3", "three", 0, True)], **where)
    found = subscribe_helpers.simple("helpers/#", qos=2, msg_count=3, **where)
    assert sorted((m.topic, m.payload) for m in found) == [("helpers/1", b"one"), ("helpers/2", b"two"), ("helpers/3", b"three")]
    publish_helpers.multiple([(f"helpers/{at}", "", 1, True) for at in (1, 2, 3)], **where)


def large():
    """Payloads of 4 MB and empty ones."""
    transport = OPTIONS.get("transport", "tcp")
    with Peer("large-publisher") as publisher, Peer("large", transport=transport) as peer:
        peer.subscribe("large/#", 2)
        # paho-mqtt 2.2 loses the rest of a packet that one call of `send` does not take, if it goes over an unencrypted WebSocket
        # (`_packet_write`), so only small ones are sent that way
        for sender, size in ((publisher, 4_000_000), (peer, 200_000 if transport == "ws" else 4_000_000)):
            payload = bytes(at % 251 for at in range(size))
            for qos in (0, 1, 2):
                sender.publish("large/x", payload, qos)
                assert peer.message().payload == payload
                sender.publish("large/empty", None, qos)
                assert peer.message().payload == b""


def keepalive():
    """A client without messages stays connected by its pings."""
    with Peer("keepalive", keepalive=1) as peer:
        time.sleep(4)
        assert peer.events["disconnect"].empty()
        assert peer.client.is_connected()


def refusals():
    """Reasons of refusals, as far as each version has them."""
    for login, expected in ((("ann", "guess"), 0x86), (("unknown", "guess"), 0x86), (("banned", "secret"), 0x8A)):
        stranger = Peer("refusals-stranger", login=login)
        _, code, _ = stranger.start()
        stranger.client.loop_stop()
        wanted = expected if VERSION == 5 else {0x86: 0x86, 0x8A: 0x87}[expected]
        assert code.is_failure and code.value == wanted, (login, code, code.value)
    peer = Peer("refusals", login=("ann", "secret"))
    peer.start()
    codes = [code_of(code) for code in peer.subscribe([("allowed/x", 1), ("denied/x", 1)])]
    assert codes == [1, {3: 0, 4: 0x80, 5: 0x87}[VERSION]], codes  # SUBACK of MQTT 3.1 cannot refuse
    info = peer.client.publish("denied/x", "x", 1)
    if VERSION == 5:
        _, code = peer.event("publish")
        assert code.value == 0x87, code
    else:
        info.wait_for_publish(PATIENCE_SEC)
        peer.event("publish")
    peer.client.publish("denied/x", "x", 2)
    _, code = peer.event("publish")
    # paho-mqtt ignores the reason in PUBREC and sends PUBREL, which the broker answers with Packet Identifier not found
    assert code.value == (0x92 if VERSION == 5 else 0), code
    # a second connection with the same client id
    second = Peer("refusals", login=("ann", "secret"))
    second.start()
    code, _ = peer.event("disconnect")
    peer.client.loop_stop()
    assert code.value == (0x8E if VERSION == 5 else code.value) and code.is_failure, code
    # a packet that is larger than the broker takes
    second.client.reconnect_delay_set(60, 60)
    second.client.publish("allowed/x", bytes(OPTIONS["max"] + 1), 0)
    code, props = second.event("disconnect")
    second.client.loop_stop()
    assert code.value == (0x95 if VERSION == 5 else code.value) and code.is_failure, code


def mqtt5():
    """Properties of MQTT 5."""
    limits = {"ReceiveMaximum": 3, "TopicAliasMaximum": 5, "MaximumPacketSize": 100_000, "SessionExpiryInterval": 60}
    peer = Peer("", **limits)
    _, code, props = peer.start()
    assert code == 0 and len(props.AssignedClientIdentifier) > 0
    assert props.TopicAliasMaximum > 0
    sender = Peer("mqtt5-sender")
    sender.start()
    requested = SubscribeOptions(qos=1, noLocal=True)
    peer.subscribe([("mqtt5/+", requested)], properties=properties(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=7))
    peer.subscribe([("mqtt5/a", SubscribeOptions(qos=0))], properties=properties(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=268_435_455))
    values = {
        "ContentType": "application/json", "ResponseTopic": "answers/1", "CorrelationData": bytes(range(256)),
        "PayloadFormatIndicator": 1, "MessageExpiryInterval": 100,
    }
    given = properties(PacketTypes.PUBLISH, UserProperty=[("k", "1"), ("k", "2"), ("ü", "")], **values)
    sender.publish("mqtt5/a", '{"a":1}', 1, properties=given)
    ids = []
    while sorted(ids) != [7, 268_435_455]:
        message = peer.message()
        seen = message.properties
        for name in values:
            assert getattr(seen, name) == values[name] or name == "MessageExpiryInterval" and 98 <= seen.MessageExpiryInterval <= 100, name
        assert seen.UserProperty == [("k", "1"), ("k", "2"), ("ü", "")]
        ids += seen.SubscriptionIdentifier
    # no local
    peer.publish("mqtt5/b", "own", 1)
    peer.nothing()
    # topic aliases of the client
    for text, topic in (("1", "mqtt5/b"), ("2", ""), ("3", "")):
        sender.publish(topic, text, 1, properties=properties(PacketTypes.PUBLISH, TopicAlias=2))
        assert peer.message().payload.decode() == text
    # a message that expires while its receiver is offline, and one that does not
    offline = Peer("mqtt5-offline", kept=True)
    offline.start()
    offline.subscribe("expiry", 1)
    offline.stop()
    sender.publish("expiry", "short", 1, properties=properties(PacketTypes.PUBLISH, MessageExpiryInterval=1))
    sender.publish("expiry", "long", 1, properties=properties(PacketTypes.PUBLISH, MessageExpiryInterval=60))
    time.sleep(1.3)
    online = Peer("mqtt5-offline", kept="resumed")
    online.start()
    message = online.message()
    assert message.payload == b"long" and 55 <= message.properties.MessageExpiryInterval <= 59
    online.nothing()
    online.stop()
    # a session that expires
    short = Peer("mqtt5-short", kept=True, SessionExpiryInterval=1)
    short.start()
    short.stop()
    time.sleep(1.3)
    flags, _, _ = (late := Peer("mqtt5-short", kept="resumed")).start()
    assert_present(flags, False)
    late.stop()
    # Receive Maximum: not more than 3 messages without acknowledgement
    slow = Peer("mqtt5-slow", manual=True, ReceiveMaximum=3)
    slow.start()
    slow.subscribe("flow", 2)
    for at in range(10):
        sender.publish("flow", str(at), 1 + at % 2)
    for at in range(10):
        if at <= 7:
            expect_window(slow, 3)
        message = slow.message()
        assert int(message.payload) == at
        slow.client.ack(message.mid, message.qos)
    slow.nothing()
    slow.stop()
    # a message that is larger than the subscriber takes is dropped for it
    sender.publish("mqtt5/b", bytes(200_000), 1)
    sender.publish("mqtt5/b", "small", 1)
    assert peer.message().payload == b"small"
    sender.stop()
    peer.stop()


def expect_window(peer, size):
    """Wait until a number of messages have arrived, and check that no more arrive."""
    deadline = time.monotonic() + PATIENCE_SEC
    while peer.messages.qsize() < size and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.05)
    assert peer.messages.qsize() == size, peer.messages.qsize()


globals()[sys.argv[1]]()
