import type { QoS } from '../packets/types.ts';
import type { PastAlarm, PresentAlarm } from '../records/alarm.ts';
import type { ClientInfo } from '../records/client.ts';
import type { SysTopics, WarningKind } from './sys.ts';

/** Publishes alarms, warnings and notices about clients under `$SYS`. Before the first start of the broker, it does nothing. */
export class SysNotices {
  #sys: SysTopics | undefined;

  /** Start publishing, when the broker has started. */
  start(sys: SysTopics): void {
    this.#sys = sys;
    sys.start();
  }

  /** Apply changed options of `$SYS` while the broker runs. */
  configured(): void {
    this.#sys?.configured();
  }

  stop(): void {
    this.#sys?.stop();
  }

  /** Publish that an alarm has been raised. */
  raised({ id, severity, title, summary, raisedAt }: PresentAlarm): void {
    this.#sys?.alarm('alert', { id, desc: { severity, title, summary, timestamp: raisedAt } });
  }

  /** Publish that an alarm has been cleared. */
  cleared({ id }: PastAlarm): void {
    this.#sys?.alarm('clear', { id });
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
