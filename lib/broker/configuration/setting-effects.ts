import type { BrokerSettings } from './options.ts';

/** The parts of the broker with separate values that follow from options. */
interface ConfiguredParts {
  readonly services: {
    readonly settings: BrokerSettings;
    readonly hooks: { limitTime(timeoutMs: number): void };
    readonly notices: { configured(): void };
    readonly life: { readonly isRunning: boolean };
    readonly turn: { later(run: () => void): void };
  };
  readonly pressure: { configured(): void };
  readonly sessions: { configured(): void };
  readonly connections: { configured(): void };
  readonly bans: { configured(): void };
  readonly retainer: { readonly messages: { limited(): void; expiryChanged(): Iterator<void> } };
  /** undefined: there is no store. */
  readonly ledger: { readonly unwritten: { limit(bytes: number): void } } | undefined;
  readonly persistence: { configured(): void } | undefined;
}

/**
 * The effects of a change of an option of the broker, by the name of the option. The other options are read whenever they are used.
 * @param measureMachine starts measuring the machine again
 */
export function effectsOf(
  parts: ConfiguredParts,
  measureMachine: () => void
): Readonly<Partial<Record<keyof BrokerSettings, () => void>>> {
  const { services, retainer } = parts;
  const { settings } = services;
  const memory = () => parts.pressure.configured();
  const sessions = () => parts.sessions.configured();
  const connections = () => parts.connections.configured();
  const retained = () => retainer.messages.limited();
  const sys = () => {
    if (services.life.isRunning) services.notices.configured();
  };
  const machine = () => {
    if (services.life.isRunning) measureMachine();
  };
  return {
    hookTimeout: () => services.hooks.limitTime(settings.hookTimeout),
    maxConnections: connections,
    maxConnectionsPerAddress: connections,
    maxUnwrittenBytes: () => parts.ledger?.unwritten.limit(settings.maxUnwrittenBytes),
    maxSessions: sessions,
    processHighWatermark: sessions,
    processLowWatermark: sessions,
    memoryHighWatermark: memory,
    maxTotalMqueueBytes: memory,
    maxTotalMqueueStoreBytes: () => parts.persistence?.configured(),
    maxRetainedMessages: retained,
    maxRetainedBytes: retained,
    retainedExpiryInterval: () => inSlices(retainer.messages.expiryChanged(), services.turn),
    sysInterval: sys,
    sysHeartbeat: sys,
    sysDottedTopics: sys,
    flappingDetectPolicy: () => parts.bans.configured(),
    cpuHighWatermark: machine,
    cpuLowWatermark: machine,
    cpuCheckInterval: machine,
    sysmemHighWatermark: machine,
    memCheckInterval: machine
  };
}

/** Take one step of the work in each turn. */
function inSlices(work: Iterator<void>, turn: { later(run: () => void): void }): void {
  if (!work.next().done) turn.later(() => inSlices(work, turn));
}
