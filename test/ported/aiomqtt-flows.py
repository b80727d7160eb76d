"""Run a flow of aiomqtt against a broker: aiomqtt-flows.py FLOW OPTIONS (see flows.py)"""
import asyncio
import json
import ssl
import sys

import aiomqtt
from aiomqtt import MqttError, Will
from aiomqtt.exceptions import MqttConnectError
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.subscribeoptions import SubscribeOptions

from flows import NOTHING_SEC, OPTIONS, PATIENCE_SEC, VERSION, ask, code_of, properties


class Client(aiomqtt.Client):
    def _on_socket_register_write(self, client, userdata, sock):
        # aiomqtt 2.5 adds the writer in the next iteration of the loop, when the socket may be closed: the next one with its descriptor
        # then fails. It connects in another thread, which has to leave this to the loop
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            super()._on_socket_register_write(client, userdata, sock)
            return
        if sock.fileno() >= 0:
            self._loop.add_writer(sock.fileno(), self._client.loop_write)


def client(identifier, kept=None, transport="tcp", port=None, connect=None, **named):
    """Make a client. `kept` is None for a clean session, "new" for one that is kept, and "resumed" for the next connection with it."""
    if VERSION == 5:
        expiry = {} if kept is None else {"SessionExpiryInterval": 300}
        named["properties"] = properties(PacketTypes.CONNECT, **expiry, **(connect or {}))
        named["clean_start"] = kept != "resumed"
    else:
        named["clean_session"] = kept is None
    if transport in ("tls", "wss"):
        named["tls_context"] = ssl.create_default_context(cafile=OPTIONS["ca"])
    if transport in ("ws", "wss"):
        named |= {"transport": "websockets", "websocket_path": "/mqtt"}
    return Client(
        "localhost", port or OPTIONS["ports"][transport], identifier=f"{identifier}-{VERSION}", protocol=aiomqtt.ProtocolVersion(VERSION), **named
    )


async def next_of(client):
    return await asyncio.wait_for(anext(client.messages), PATIENCE_SEC)


async def nothing(client):
    try:
        message = await asyncio.wait_for(anext(client.messages), NOTHING_SEC)
    except asyncio.TimeoutError:
        return
    raise AssertionError(f"unexpected message {message.topic} {message.payload}")


async def exchange():
    """Messages of each QoS in both directions, with sequence numbers, and large payloads."""
    transport = OPTIONS.get("transport", "tcp")
    count = 200
    async with client("exchange-a", transport=transport) as a, client("exchange-b", transport=transport) as b:

        async def send(peer, name):
            for first in range(0, count, 20):
                await asyncio.gather(*(peer.publish(f"from/{name}/{qos}", at, qos) for at in range(first, first + 20) for qos in (0, 1, 2)))

        async def receive(peer, other):
            seen = {0: [], 1: [], 2: []}
            for _ in range(3 * count):
                message = await next_of(peer)
                assert message.topic.matches(f"from/{other}/{message.qos}")
                seen[message.qos].append(int(message.payload))
            for qos in (0, 1, 2):
                assert seen[qos] == list(range(count)), (qos, seen[qos])

        for peer, other in ((a, "b"), (b, "a")):
            codes = await peer.subscribe([(f"from/{other}/{qos}", qos) for qos in (0, 1, 2)])
            assert [code_of(code) for code in codes] == [0, 1, 2], codes
        await asyncio.gather(send(a, "a"), send(b, "b"), receive(a, "b"), receive(b, "a"))
        await b.subscribe("large", 2)
        payload = bytes(at % 251 for at in range(200_000 if transport == "ws" else 3_000_000))
        for qos in (0, 1, 2):
            await a.publish("large", payload, qos)
            assert (await next_of(b)).payload == payload
        await nothing(a)


async def sessions():
    """A session with its subscriptions and messages is kept, and a clean one is not."""
    async with client("sessions", kept="new") as kept:
        await kept.subscribe([("kept/1", 1), ("kept/2", 2)])
    async with client("sessions-publisher") as publisher:
        for qos in (1, 2):
            for at in range(20):
                await publisher.publish(f"kept/{qos}", at, qos)
    async with client("sessions", kept="resumed") as resumed:
        seen = [await next_of(resumed) for _ in range(40)]
        for qos in (1, 2):
            assert [int(m.payload) for m in seen if str(m.topic) == f"kept/{qos}" and m.qos == qos] == list(range(20))
        await nothing(resumed)
    async with client("sessions") as clean:
        await clean.publish("kept/1", "x", 1)
        await nothing(clean)
    async with client("sessions", kept="resumed") as again:
        await again.publish("kept/1", "x", 1)
        await nothing(again)


async def resume():
    """Connections that are cut in the middle of QoS 1 and 2 exchanges: prints what the subscriber has received."""
    qos, count = OPTIONS["qos"], OPTIONS["count"]
    topic = f"resume/{qos}"
    seen = []
    ready = asyncio.Event()

    async def subscribe():
        kept = "new"
        subscriber = client("resume-subscriber", kept=kept, port=OPTIONS["subscriber"])
        while True:
            try:
                async with subscriber:
                    if not ready.is_set():
                        await subscriber.subscribe(topic, qos)
                        if VERSION == 5:
                            subscriber._clean_start = False  # only the first connection has begun a new session
                        ready.set()
                    async for message in subscriber.messages:
                        seen.append(int(message.payload))
            except MqttError:
                await asyncio.sleep(0.01)

    async def publish():
        publisher = client("resume-publisher", kept="resumed", port=OPTIONS["publisher"])
        at = 0
        while True:
            try:
                async with publisher:
                    while at < count:
                        at += 1  # a message without acknowledgement is sent again after the next connection, by paho-mqtt
                        await publisher.publish(topic, at - 1, qos, timeout=0.5)
                        while len(set(seen)) < at - 5:  # leave messages for the connections of the subscriber that are cut later
                            await asyncio.sleep(0.001)
                    await asyncio.Future()
            except MqttError:
                await asyncio.sleep(0.01)

    tasks = [asyncio.create_task(subscribe())]
    await asyncio.wait_for(ready.wait(), PATIENCE_SEC)
    tasks.append(asyncio.create_task(publish()))
    async with asyncio.timeout(PATIENCE_SEC):
        while len(set(seen)) < count:
            await asyncio.sleep(0.01)
    await asyncio.sleep(1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(json.dumps(seen))


async def restart():
    """The loop with which the documentation of aiomqtt reconnects, and a broker that is restarted with its state."""
    seen = asyncio.Queue()
    connections = asyncio.Queue()

    async def listen():
        kept = "new"
        while True:
            try:
                async with client("restart", kept=kept) as peer:
                    if kept == "new":
                        await peer.subscribe("restart/#", 1)
                        kept = "resumed"
                    await connections.put(peer)
                    async for message in peer.messages:
                        await seen.put(message)
            except MqttError as error:
                await connections.put(error)
                await asyncio.sleep(0.05)

    task = asyncio.create_task(listen())
    peer = await asyncio.wait_for(connections.get(), PATIENCE_SEC)
    await peer.publish("restart/kept", "before", 1, retain=True)
    assert (await asyncio.wait_for(seen.get(), PATIENCE_SEC)).payload == b"before"
    await asyncio.to_thread(ask, "stop")
    error = await asyncio.wait_for(connections.get(), PATIENCE_SEC)
    cause = error.__cause__ or error
    assert VERSION != 5 or code_of(cause.rc) == 0x8B, cause  # Server shutting down
    await asyncio.to_thread(ask, "start")
    while isinstance(peer := await asyncio.wait_for(connections.get(), PATIENCE_SEC), MqttError):
        pass
    await peer.publish("restart/1", "after", 1)
    message = await asyncio.wait_for(seen.get(), PATIENCE_SEC)
    if message.payload == b"before":  # the broker was stopped before it had received the acknowledgement
        message = await asyncio.wait_for(seen.get(), PATIENCE_SEC)
    assert message.payload == b"after"
    async with client("restart-other") as other:
        await other.subscribe("restart/kept")
        message = await next_of(other)
        assert message.retain and message.payload == b"before"
        await other.publish("restart/kept", None, 1, retain=True)
    task.cancel()


async def wills():
    """A will is published when a connection is lost, and not after DISCONNECT."""
    async with client("wills-watcher") as watcher:
        await watcher.subscribe("wills/#", 2)
        for qos in (0, 1, 2):
            lost = client("wills-lost", will=Will(f"wills/{qos}", "lost", qos, retain=qos == 1))
            await lost.__aenter__()
            lost._client._sock_close()
            message = await next_of(watcher)
            assert (str(message.topic), message.payload, message.qos) == (f"wills/{qos}", b"lost", qos)
        await watcher.publish("wills/1", None, 1, retain=True)
        await next_of(watcher)
        async with client("wills-polite", will=Will("wills/polite", "lost")):
            pass
        await nothing(watcher)


async def retained():
    """Retained messages arrive with a subscription, are replaced and deleted."""
    async with client("retained-publisher") as publisher, client("retained-subscriber") as subscriber:
        for qos in (0, 1, 2):
            await publisher.publish(f"retained/{qos}", "first", qos, retain=True)
            await publisher.publish(f"retained/{qos}", "second", qos, retain=True)
        await subscriber.subscribe("retained/+", 2)
        seen = sorted([(str(m.topic), m.payload, m.qos, m.retain) for m in [await next_of(subscriber) for _ in range(3)]])
        assert seen == [(f"retained/{qos}", b"second", qos, True) for qos in (0, 1, 2)], seen
        for qos in (0, 1, 2):
            await publisher.publish(f"retained/{qos}", None, qos, retain=True)
            message = await next_of(subscriber)
            assert message.payload == b"" and not message.retain
    async with client("retained-late") as late:
        await late.subscribe("retained/#", 2)
        await nothing(late)


async def filters():
    """Wildcards, shared subscriptions and UNSUBSCRIBE."""
    async with client("filters-publisher") as publisher, client("filters-subscriber") as subscriber:
        for topic_filter, topic in {"a/+/c": "a//c", "a/#": "a", "+/+": "/x"}.items():
            await subscriber.subscribe(topic_filter, 1)
            await publisher.publish(topic, topic_filter, 1)
            message = await next_of(subscriber)
            assert str(message.topic) == topic and message.topic.matches(topic_filter)
            await subscriber.unsubscribe(topic_filter)
            await publisher.publish(topic, "unsubscribed", 1)
        await nothing(subscriber)
    members = [client(f"filters-member-{at}") for at in range(3)]
    done = []

    async def work(member):
        async for message in member.messages:
            done.append(int(message.payload))

    for member in members:
        await member.__aenter__()
        await member.subscribe("$share/group/jobs/+", 1)
    tasks = [asyncio.create_task(work(member)) for member in members]
    async with client("filters-publisher") as publisher:
        for at in range(90):
            await publisher.publish(f"jobs/{at % 7}", at, 1)
    async with asyncio.timeout(PATIENCE_SEC):
        while len(done) < 90:
            await asyncio.sleep(0.01)
    await asyncio.sleep(NOTHING_SEC)
    assert sorted(done) == list(range(90)), sorted(done)
    for task, member in zip(tasks, members):
        task.cancel()
        await member.__aexit__(None, None, None)


async def keepalive():
    """A client without messages stays connected by its pings."""
    async with client("keepalive", keepalive=1) as peer:
        await asyncio.sleep(4)
        await peer.publish("keepalive", "x", 1)


async def refusals():
    """Reasons of refusals, as far as each version has them."""
    for login, expected in ((("ann", "guess"), 0x86), (("unknown", "guess"), 0x86), (("banned", "secret"), 0x8A)):
        try:
            async with client("refusals-stranger", username=login[0], password=login[1]):
                raise AssertionError(f"{login} may connect")
        except MqttConnectError as error:
            assert code_of(error.rc) == (expected if VERSION == 5 or expected == 0x86 else 0x87), (login, error.rc)
    peer = client("refusals", username="ann", password="secret")
    try:
        async with peer:
            codes = [code_of(code) for code in await peer.subscribe([("allowed/x", 1), ("denied/x", 1)])]
            assert codes == [1, {3: 0, 4: 0x80, 5: 0x87}[VERSION]], codes
            await peer.publish("denied/x", "x", 1)  # aiomqtt ignores the reason code
            async with client("refusals", username="ann", password="secret"):
                await next_of(peer)
        raise AssertionError("a client stays connected when another one has its identifier")
    except MqttError as error:
        cause = error.__cause__ or error
        assert VERSION != 5 or code_of(cause.rc) == 0x8E, cause
    try:
        async with client("refusals", username="ann", password="secret") as large:
            await large.publish("allowed/x", bytes(OPTIONS["max"] + 1), 0)
            await next_of(large)
        raise AssertionError("a client stays connected after a packet that is too large")
    except MqttError as error:
        cause = error.__cause__ or error
        assert VERSION != 5 or code_of(cause.rc) == 0x95, cause


async def mqtt5():
    """Properties of MQTT 5."""
    async with client("mqtt5", connect={"ReceiveMaximum": 3}) as peer, client("mqtt5-sender") as sender:
        options = SubscribeOptions(qos=1, noLocal=True)
        await peer.subscribe("mqtt5/+", options=options, properties=properties(PacketTypes.SUBSCRIBE, SubscriptionIdentifier=7))
        values = {
            "ContentType": "application/json", "ResponseTopic": "answers/1", "CorrelationData": bytes(range(256)),
            "PayloadFormatIndicator": 1, "MessageExpiryInterval": 100,
        }
        given = properties(PacketTypes.PUBLISH, UserProperty=[("k", "1"), ("k", "2"), ("ü", "")], **values)
        for at in range(10):
            await sender.publish("mqtt5/a", at, 1, properties=given)
        for at in range(10):
            message = await next_of(peer)
            seen = message.properties
            assert int(message.payload) == at and seen.SubscriptionIdentifier == [7]
            for name in values:
                expected = values[name]
                assert getattr(seen, name) == expected or name == "MessageExpiryInterval" and 95 <= seen.MessageExpiryInterval <= 100, name
            assert seen.UserProperty == [("k", "1"), ("k", "2"), ("ü", "")]
        await peer.publish("mqtt5/b", "own", 1)
        await nothing(peer)


asyncio.run(globals()[sys.argv[1]]())
