"""What the programs with flows of MQTT clients have in common: PROGRAM FLOW OPTIONS

OPTIONS is JSON: `version` (3, 4 or 5), `ports` of the listeners, `ca` (a file), and what the flow needs. A failure is a traceback.
"""
import json
import sys

from paho.mqtt.properties import Properties

OPTIONS = json.loads(sys.argv[2])
VERSION = OPTIONS["version"]
PATIENCE_SEC = 60
"""Time within which something happens that has to happen."""
NOTHING_SEC = 0.5
"""Time in which something does not happen."""


def properties(packet, **values):
    if VERSION != 5:
        return None
    result = Properties(packet)
    for name, value in values.items():
        setattr(result, name, value)
    return result


def code_of(reason):
    return getattr(reason, "value", reason)


def ask(question):
    """Ask the program that has started this one to do something, and wait until it is done."""
    print(question)
    sys.stdin.readline()
