import { InvalidInput } from '../../base/errors.ts';
import type { OutboxEntry } from '../../outbox/entries.ts';
import type { Outbox } from '../../outbox/outbox.ts';
import type { Outboxes } from '../../outbox/outboxes.ts';
import { SendError } from '../../outbox/send-error.ts';
import type { Cascade } from '../../packets/named-publisher.ts';
import type { TargetLimits } from '../../targets/target.ts';
import type { OpenSink, SinkItem } from '../types.ts';
import { StreamFailure } from '../values/values.ts';
import type { CommonProperties } from './common-properties.ts';
import { EntryItem, encodeEntry, type FilledKind, type ItemKind } from './item.ts';

/** An output that cannot be sent is kept without an age limit. */
const NO_AGE = Number.MAX_SAFE_INTEGER;
const BACK_OFF_MS = 250;
const MAX_BACK_OFF_MS = 60_000;
/** Time limit of a delivery; sinks have shorter limits. */
const SEND_MS = 300_000;
/** Maximum bytes of the cache of one sink in memory. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Settings and dependencies of a cache. */
interface CacheSetup {
  readonly outboxes: Pick<Outboxes, 'open'>;
  readonly ruleId: string;
  readonly index: number;
  /** Type of the sink. */
  readonly type: string;
  readonly properties: CommonProperties;
  readonly kind: ItemKind;
  /** True if the bytes of items are the JSON of their values. */
  readonly isJson: boolean;
  failed(error: unknown): void;
}

/**
 * The unsent outputs of a sink, in an outbox: they are sent in order, and again after a delay if sending fails. With a
 * store they survive a restart. Values that JSON cannot express are read back in the form in which JSON expresses them.
 */
export class SinkCache {
  readonly #setup: CacheSetup;
  readonly #outbox: Outbox;

  constructor(setup: CacheSetup, sink: OpenSink) {
    const { outboxes, ruleId, index, type, properties, kind } = setup;
    this.#setup = setup;
    this.#outbox = outboxes.open({
      name: cacheName(ruleId, index, type),
      label: `sink_${type}_${index} of stream rule ${ruleId}`,
      ...outboxLimitsOf({ ...properties, enableCache: true }),
      send: async ([entry]) => {
        try {
          await sendEntry(sink, entry, kind);
        } catch (error) {
          setup.failed(error instanceof SendError && error.isFinal ? (error.cause ?? error) : error);
          throw error;
        }
      },
      settled: (_, outcome) => {
        if (outcome === 'overflow')
          setup.failed(
            new StreamFailure(
              'the cache of the sink is full: an output is dropped (memoryCacheThreshold, maxDiskCache)'
            )
          );
      }
    });
  }

  get size(): number {
    return this.#outbox.size;
  }

  /** @throws StreamFailure; StateError BROKER_NOT_STARTED */
  add(item: SinkItem): void {
    this.#outbox.add('', encodeEntry(item, this.#setup.kind, this.#setup.isJson));
  }

  /** End delays, because the target can be reached again. */
  retryNow(): void {
    this.#outbox.retryNow();
  }

  close(): void {
    if (this.#setup.properties.cleanCacheAtStop) this.#outbox.clear();
    this.#outbox.close();
  }
}

/**
 * The limits of the outbox of a sink: those of the cache, or those of any outbox if outputs are not persisted. Sinks have
 * shorter time limits than it.
 */
export function outboxLimitsOf(properties: CommonProperties): TargetLimits {
  if (!properties.enableCache) return { timeout: SEND_MS };
  const { memoryCacheThreshold, maxDiskCache, resendInterval, retryInterval } = properties;
  const interval = resendInterval ?? retryInterval;
  return {
    isPersisted: true,
    maxEntries: Math.max(1, Math.min(memoryCacheThreshold + maxDiskCache, Number.MAX_SAFE_INTEGER)),
    maxBytes: MAX_BYTES,
    maxAge: NO_AGE,
    concurrency: 1,
    timeout: SEND_MS,
    backOff: Math.max(1, interval ?? BACK_OFF_MS),
    maxBackOff: Math.max(1, interval ?? MAX_BACK_OFF_MS)
  };
}

/**
 * Send an entry of an outbox.
 * @throws SendError with `isFinal` after the last attempt, and if each further attempt would fail
 */
export async function sendEntry(
  sink: OpenSink,
  { id, content, attempts, cascade }: Pick<OutboxEntry, 'id' | 'content' | 'attempts'> & { readonly cascade?: Cascade },
  kind: FilledKind
): Promise<void> {
  try {
    await sink.send(new EntryItem(id, content as Buffer, kind, cascade));
  } catch (error) {
    const { retryCount } = kind.properties as unknown as CommonProperties;
    const isLoop = (error as { readonly code?: unknown }).code === 'RULE_LOOP';
    const isHopeless = isLoop || error instanceof InvalidInput || error instanceof StreamFailure;
    if (!isHopeless && (retryCount === undefined || attempts + 1 < Math.max(1, retryCount))) throw error;
    throw new SendError((error as Error).message, { isFinal: true, cause: error });
  }
}

/** The name of the outbox of a sink, which may be shorter than the rule id. */
function cacheName(ruleId: string, index: number, type: string): string {
  return `${cachePrefix(ruleId)}${index}:${type}`;
}

function cachePrefix(ruleId: string): string {
  const id = Buffer.from(ruleId).toString('base64url');
  return `sink:${id.length <= 100 ? id : `${id.slice(0, 50)}~${id.slice(-49)}`}:`;
}

/** Delete the stored caches of a rule that is stopped and dropped. */
export function discardCaches(outboxes: Pick<Outboxes, 'kept' | 'delete'>, ruleId: string): void {
  for (const { name } of outboxes.kept()) if (name.startsWith(cachePrefix(ruleId))) outboxes.delete(name);
}
