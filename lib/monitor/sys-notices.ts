import type { DisconnectReason } from '../events/events.ts';
import type { ClientInfo } from '../records/client.ts';
import type { Alarm, SysTopics, WarningKind } from './sys.ts';

/** Publishes alarms, warnings and the presence of clients under `$SYS`. Before the first start of the broker, it does nothing. */
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

  connected(client: ClientInfo): void {
    this.#sys?.connected(client);
  }

  disconnected(client: ClientInfo, reason: DisconnectReason): void {
    this.#sys?.disconnected(client, reason);
  }
}
