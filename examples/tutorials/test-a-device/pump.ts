// The firmware of the tutorial "Test a device": a pump that gets commands over MQTT. The hardware is an interface, which tests replace.

// #region device
import type { IClientOptions, MqttClient } from 'mqtt';

/** The hardware, as the firmware uses it. */
export interface Hardware {
  /** The level of the tank, in percent. */
  level(): number;
  motor(isOn: boolean): void;
}

/** Options of the connection: the session is kept, and the broker publishes the will if the pump is lost. */
export const CONNECTION = {
  clientId: 'pump',
  clean: false,
  keepalive: 30,
  will: { topic: 'pump/state', payload: Buffer.from('lost'), qos: 1, retain: true }
} satisfies IClientOptions;

const MAX_RUN_SEC = 60;
const REPORT_MS = 10_000;

/** Start the pump. Returns a function that stops it. */
export function startPump(client: MqttClient, hardware: Hardware): () => void {
  let timer: NodeJS.Timeout | undefined;
  const report = (topic: string, text: string) => client.publish(topic, text, { qos: 1, retain: true });
  const turn = (isOn: boolean) => {
    clearTimeout(timer);
    hardware.motor(isOn);
    report('pump/motor', isOn ? 'on' : 'off');
  };
  client.on('connect', ({ sessionPresent }) => {
    report('pump/state', 'ready');
    if (!sessionPresent) client.subscribe('pump/run', { qos: 1 });
  });
  client.on('message', (_topic, payload) => {
    turn(true);
    timer = setTimeout(turn, Math.min(Number(payload), MAX_RUN_SEC) * 1_000, false);
  });
  const reports = setInterval(() => report('pump/level', String(hardware.level())), REPORT_MS);
  return () => {
    clearInterval(reports);
    clearTimeout(timer);
  };
}
// #endregion
