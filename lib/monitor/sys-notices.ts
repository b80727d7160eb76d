import type { QoS } from '../packets/types.ts';
import type { ClientInfo } from '../records/client.ts';
import type { Alarm, SysTopics, WarningKind } from './sys.ts';

/** Publishes alarms, warnings and notices about clients under `$SYS`. Before the first start of the broker, it does nothing. */
export class SysNotices {
  #sys: SysTopics | undefined;
  readonly #wallMs: () => number;

  constructor(wallMs: () => number) {
    this.#wallMs = wallMs;
  }

  /** Begin to publish, when the broker has started. */
  start(sys: SysTopics): void {
    this.#sys = sys;
    sys.start();
  }

  stop(): void {
    this.#sys?.stop();
  }

  /** Raise or clear an alarm. */
  alarm(change: 'alert' | 'clear', { id, title, summary }: Alarm): void {
    this.#sys?.alarm(change, { id, desc: { severity: 'critical', title, summary, timestamp: this.#wallMs() } });
  }

  /** Publish a warning about the process or a client. */
  warn(kind: WarningKind, subject: string, text: string): void {
    this.#sys?.warn(kind, subject, text);
  }

  /** Publish a notice about a client. See `SysTopics`. */
  aboutClient(suffix: string, client: ClientInfo, payload: () => string, qos: QoS): void {
    this.#sys?.aboutClient(suffix, client, payload, qos);
  }
}
