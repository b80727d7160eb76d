import type { AccessControl } from '../../access/access-control.ts';
import { concerns } from '../../access/banned.ts';
import { FlappingDetector, type FlappingPolicy, flappingPolicyOf } from '../../access/flapping.ts';
import { FunctionTimer } from '../../base/timing-wheel.ts';
import type { BrokerEvents } from '../../events/event-types.ts';
import { LOST } from '../../events/reasons.ts';
import { type Ban, banText } from '../../records/ban.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { Services } from '../services.ts';
import type { Connections } from './connections.ts';

/** The interval at which bans that have ended are deleted. */
const SWEEP_MS = 60_000;
/** Number of alarms that are examined in one slice. */
const ALARMS_AT_ONCE = 500;
/** Maximum length of the id of an alarm. */
const MAX_ALARM_ID = 256;

/** Handles the consequences of bans, and bans flapping clients. */
export class Bans {
  readonly #services: Services;
  readonly #access: AccessControl;
  readonly #ledger: Ledger | undefined;
  readonly #connections: Connections;
  #detector: FlappingDetector | undefined;
  readonly #onDisconnected = (event: BrokerEvents['client.disconnected']) => this.#disconnected(event);
  /** The policy from which `#detector` was created. */
  #policy: FlappingPolicy | undefined;
  /** The client ids of the present alarms about flapping, by the ids of the alarms. */
  readonly #flapping = new Map<string, string>();
  readonly #sweep = new FunctionTimer(() => {
    void this.#deleteEnded().finally(() => this.#sweepLater());
  });

  constructor(services: Services, access: AccessControl, ledger: Ledger | undefined, connections: Connections) {
    this.#services = services;
    this.#access = access;
    this.#ledger = ledger;
    this.#connections = connections;
    this.configured();
  }

  /** Start or stop observing clients, because the options about flapping may have changed. */
  configured(): void {
    const { settings, events } = this.#services;
    const isOn = [...settings.zones.values()].some(({ enableFlappingDetect }) => enableFlappingDetect);
    const policy = isOn ? flappingPolicyOf(settings.flappingDetectPolicy) : undefined;
    if (JSON.stringify(policy) === JSON.stringify(this.#policy)) return;
    this.#policy = policy;
    this.#detector = policy && new FlappingDetector(policy);
    events.off('client.disconnected', this.#onDisconnected);
    if (policy !== undefined) events.on('client.disconnected', this.#onDisconnected, undefined);
  }

  /** Called when the broker has started. */
  start(): void {
    this.#sweepLater();
  }

  /** Called when a ban was made. @returns the number of clients that were disconnected */
  made(ban: Ban): number {
    const { events, settings, clock } = this.#services;
    if (events.heard['client.banned']) events.emit('client.banned', { ban });
    this.#sweepLater();
    return settings.banDisconnects && ban.until > clock.now() ? this.disconnect(ban) : 0;
  }

  #sweepLater(): void {
    const isNeeded = this.#access.banned.size > 0 || this.#flapping.size > 0;
    if (isNeeded && this.#services.life.isRunning && this.#sweep.dueMs === Infinity)
      this.#services.wheel.arm(this.#sweep, SWEEP_MS);
  }

  /** Disconnect the clients that a ban is about. @returns their number */
  disconnect(ban: Ban): number {
    const isConcerned = concerns(ban);
    const banned = [...this.#connections.all].filter(
      ({ session: { client }, isClosed }) => !isClosed && client.agreement.zone.enableBan && isConcerned(client)
    );
    for (const { session } of banned) session.lifecycle.close('banned', { why: banText(ban) });
    return banned.length;
  }

  #disconnected({ client, reason }: BrokerEvents['client.disconnected']): void {
    const { settings, clock, announcer } = this.#services;
    const { banMs } = this.#policy as FlappingPolicy;
    const zone = settings.zones.get(client.zone);
    if (!zone?.enableFlappingDetect || !LOST.has(reason)) return;
    const { clientId } = client;
    if (!this.#detector?.lost(clientId, clock.monotonic())) return;
    const ban = { kind: 'clientId', who: clientId, by: 'flapping detector', reason: 'flapping is detected' } as const;
    const until = clock.now() + banMs;
    this.#access.banned
      .create({ ...ban, until })
      .catch((error: unknown) => announcer.failed(error, 'banning a client that is flapping', client));
    this.#raise(clientId, banMs);
  }

  #raise(clientId: string, banMs: number): void {
    const { alarms, settings } = this.#services;
    const id = `flapping_detected:${clientId}`.slice(0, MAX_ALARM_ID).replace(/[\ud800-\udbff]$/, '');
    const summary = `the client id has lost its connection again and again and is banned (option flappingDetectPolicy: ${settings.flappingDetectPolicy})`;
    this.#flapping.set(id, clientId);
    alarms.raise({ id, title: 'a client is flapping', summary });
    this.#services.wheel.arm(new FunctionTimer(() => this.#clearAlarm(id)), banMs);
    this.#sweepLater(); // in case the ban is lifted, or made longer
  }

  /** Delete the bans that have ended, and clear the alarms about the client ids that are no longer banned. */
  async #deleteEnded(): Promise<void> {
    const { life, slices } = this.#services;
    const isOver = () => !life.isRunning || this.#ledger?.isFailed === true;
    if (!isOver()) await this.#access.banned.sweep(isOver);
    let left = ALARMS_AT_ONCE;
    for (const id of this.#flapping.keys()) {
      if (left-- === 0) {
        await slices.next();
        left = ALARMS_AT_ONCE - 1;
      }
      this.#clearAlarm(id);
    }
  }

  /** Clear an alarm if its client id is no longer banned. */
  #clearAlarm(id: string): void {
    const clientId = this.#flapping.get(id);
    if (clientId === undefined || this.#access.banned.get('clientId', clientId) !== undefined) return;
    this.#flapping.delete(id);
    this.#services.alarms.clear(id);
  }
}
