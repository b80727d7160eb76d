"""Run the tests of aiomqtt with another broker: aiomqtt-suite.py FOLDER PORTS

FOLDER is the source package of aiomqtt. Its tests connect to a public broker, whose ports this program replaces by those in PORTS, as
JSON. For each test it prints a line of JSON with the name, the outcome and the failure.
"""
import json
import sys

import paho.mqtt.client as mqtt
import pytest

folder, ports = sys.argv[1], json.loads(sys.argv[2])
connect = mqtt.Client.connect


def connect_here(self, host, port=1883, *rest, **named):
    if host == "test.mosquitto.org":
        host, port = "localhost", ports[str(port)]
    return connect(self, host, port, *rest, **named)


mqtt.Client.connect = connect_here


class Report:
    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            text = report.longreprtext if report.failed else None
            print("\n" + json.dumps({"test": report.nodeid.split("::")[-1], "outcome": report.outcome, "text": text}))


arguments = ["-q", "-p", "no:cacheprovider", "-c", f"{folder}/pyproject.toml", f"{folder}/tests/test_client.py"]
sys.exit(0 if pytest.main(arguments, plugins=[Report()]) in (0, 1) else 1)
