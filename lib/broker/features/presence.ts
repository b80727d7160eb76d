import type { Clock } from '../../base/clock.ts';
import { EVENTS, type NoticeName } from '../../events/catalogue.ts';
import type { BrokerEvents } from '../../events/event-types.ts';
import type { Events } from '../../events/events.ts';
import { NOTICES, type NoticeOf } from '../../monitor/presence.ts';
import type { SysNotices } from '../../monitor/sys-notices.ts';
import type { QoS } from '../../packets/types.ts';
import type { Feature } from './feature.ts';

/** The services of the broker that `Presence` uses. */
interface PresenceServices {
  readonly clock: Clock;
  readonly events: Events;
  readonly notices: Pick<SysNotices, 'aboutClient'>;
  readonly settings: { readonly presenceQos: QoS };
}

/** Publishes under `$SYS` that clients have connected and disconnected: the notices of the catalogue of events. */
export class Presence implements Feature {
  readonly name = 'presence';
  readonly about = 'Publishes under $SYS that clients have connected and disconnected.';
  isStarted = false;
  readonly #services: PresenceServices;
  #removals: (() => void)[] = [];

  constructor(services: PresenceServices) {
    this.#services = services;
  }

  start(): void {
    this.isStarted = true;
    for (const name of Object.keys(NOTICES) as NoticeName[]) this.#listen(name, NOTICES[name] as NoticeOf<typeof name>);
  }

  stop(): void {
    this.isStarted = false;
    for (const remove of this.#removals.splice(0)) remove();
  }

  #listen<E extends NoticeName>(name: E, payload: NoticeOf<E>): void {
    const { clock, events, notices, settings } = this.#services;
    const listener = (event: BrokerEvents[E]) =>
      notices.aboutClient(
        EVENTS[name].notice,
        event.client,
        () => JSON.stringify(payload(event, clock.now())),
        settings.presenceQos
      );
    events.on(name, listener);
    this.#removals.push(() => events.off(name, listener));
  }
}
