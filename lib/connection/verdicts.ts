import type { Decider, DecisionStep } from '../events/deciders.ts';
import type { RuleAction } from '../records/access-rule.ts';

/** Longer topics are not cached: V8 searches a Map of long strings slowly, and many of them would take much memory. */
const MAX_TOPIC_CHARS = 512;

/** Limits of `Verdicts`. */
export interface VerdictLimits {
  /** Maximum number of topics for each action. */
  readonly aclCacheMaxSize: number;
  /** Milliseconds. */
  readonly aclCacheTtl: number;
}

/** A verdict, as it is returned in lists. */
export interface VerdictRecord {
  /** The operation that was decided about. */
  readonly action: RuleAction;
  /** The topic name, or the topic filter of a subscription. */
  readonly topic: string;
  /** The decision. */
  readonly access: 'allow' | 'deny';
  /** Age in milliseconds. */
  readonly ageMs: number;
  /** The participant that has refused it. */
  readonly by?: DecisionStep;
  /** The decider of a refusal in a phrase, for example `rule 3 of the source "acl": deny publish to "plant/#"`. */
  readonly detail?: string;
}

/** A verdict in the cache. */
interface CachedVerdict {
  /** 0: allowed; from 0x80: the reason code of the refusal. */
  readonly code: number;
  /** Milliseconds of the monotonic clock. */
  readonly sinceMs: number;
  /** The decider of a refusal. */
  readonly decider: Decider | undefined;
}

/**
 * The rights of the client of a connection, by action and topic: the ACL cache. When there are more topics than the limit, the oldest one
 * is discarded; after `aclCacheTtl` each is decided again.
 */
export class Verdicts {
  /** Changes when a verdict is discarded: what depends on verdicts must then be decided again. */
  version = 0;
  readonly #limits: VerdictLimits;
  readonly #entries: Readonly<Record<RuleAction, Map<string, CachedVerdict>>> = {
    publish: new Map(),
    subscribe: new Map()
  };

  constructor(limits: VerdictLimits) {
    this.#limits = limits;
  }

  /** @returns undefined: not known */
  get(action: RuleAction, topic: string, nowMs: number): CachedVerdict | undefined {
    const entry = this.#entries[action].get(topic);
    if (entry === undefined) return undefined;
    if (nowMs < entry.sinceMs + this.#limits.aclCacheTtl) return entry;
    this.#entries[action].delete(topic);
    this.version++;
    return undefined;
  }

  /** The time at which the verdict about a topic, which must be known, has to be decided again. */
  dueMs(action: RuleAction, topic: string): number {
    return (this.#entries[action].get(topic)?.sinceMs ?? -Infinity) + this.#limits.aclCacheTtl;
  }

  set(action: RuleAction, topic: string, code: number, nowMs: number, decider?: Decider): void {
    const { aclCacheMaxSize } = this.#limits;
    if (topic.length > MAX_TOPIC_CHARS || aclCacheMaxSize === 0) return;
    const entries = this.#entries[action];
    if (entries.delete(topic)) this.version++;
    if (entries.size >= aclCacheMaxSize)
      for (const oldest of entries.keys()) {
        entries.delete(oldest);
        this.version++;
        break;
      }
    entries.set(topic, { code, sinceMs: nowMs, decider });
  }

  /** The valid verdicts, the newest first. */
  list(nowMs: number): VerdictRecord[] {
    const { aclCacheTtl } = this.#limits;
    return (['publish', 'subscribe'] as const)
      .flatMap((action) =>
        [...this.#entries[action]].map(([topic, { code, sinceMs, decider }]): VerdictRecord => {
          const by = decider && { by: decider.by, detail: decider.text };
          return { action, topic, access: code === 0 ? 'allow' : 'deny', ageMs: nowMs - sinceMs, ...by };
        })
      )
      .filter(({ ageMs }) => ageMs < aclCacheTtl)
      .sort((a, b) => a.ageMs - b.ageMs);
  }
}
