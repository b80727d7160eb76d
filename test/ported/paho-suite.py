"""Run the tests of paho-mqtt for MQTT 5 with another broker: paho-suite.py FOLDER PORT [TEST...]

FOLDER is the source package of paho-mqtt. Its tests start a broker of another project, which this program replaces: it prints
`restart`, and reads a line when a broker without any state accepts connections on PORT. For each test it prints a line of JSON with
the name, the outcome and the failure.
"""
import json
import sys
import types
import unittest

folder, port, *names = sys.argv[1:]
sys.path.insert(0, folder)
sys.modules["mqtt"] = types.ModuleType("mqtt")
sys.modules["mqtt.brokers"] = types.ModuleType("mqtt.brokers")

from tests import test_mqttv5  # noqa: E402


def restart(cls, port=None):
    print("restart", file=sys.__stdout__)
    sys.stdin.readline()
    cls._test_broker_port = int(sys.argv[2])


base = test_mqttv5._TestBase
base._start_broker = classmethod(restart)
base._reboot_broker = classmethod(restart)
base.tearDownClass = classmethod(lambda cls: None)


class Result(unittest.TestResult):
    def note(self, test, outcome, error=None):
        text = None if error is None else self._exc_info_to_string(error, test)
        print(json.dumps({"test": test.id().split(".")[-1], "outcome": outcome, "text": text}), file=sys.__stdout__)

    def addSuccess(self, test):
        self.note(test, "passed")

    def addExpectedFailure(self, test, error):
        self.note(test, "passed")

    def addUnexpectedSuccess(self, test):
        self.note(test, "passed unexpectedly")

    def addFailure(self, test, error):
        self.note(test, "failed", error)

    def addError(self, test, error):
        self.note(test, "failed", error)

    def addSkip(self, test, reason):
        self.note(test, f"skipped: {reason}")


loader = unittest.TestLoader()
if names:
    loader.testNamePatterns = [f"*{name}*" for name in names]
result = Result()
result.buffer = True
loader.loadTestsFromModule(test_mqttv5).run(result)
