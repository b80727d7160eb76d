import { ProtocolError } from '../errors.ts';
import type { Message } from '../packets/message.ts';
import { ReasonCode } from '../packets/reason-codes.ts';
import { checkUtf8 } from '../packets/utf8.ts';
import { type Group, mayReach, merge, type Route, type Subscription, TopicKind } from '../session/subscription.ts';
import { RouteCache } from '../topics/route-cache.ts';
import { TextMap } from '../topics/text-map.ts';
import { checkTopicBytes, isSameTopic, isWildcard, levelCount, parseSharedFilter } from '../topics/topic.ts';
import { FilterIndex } from '../topics/trie.ts';
import type { SharedStrategy } from './options.ts';
import { ShareGroup } from './shared.ts';

/** Places of the table that finds a route by the bytes of its topic. */
const PLACES = 8192;
/** Marks of topics seen once; a power of two. */
const MARKS = 32_768;
/** Bytes of a topic that its place depends on. */
const HASHED_BYTES = 64;

const NO_BYTES = Buffer.alloc(0);
const NOBODY: readonly Subscription[] = [];
const NO_GROUPS: readonly Group[] = [];

/** How share groups pick, from the options. */
export interface SharedSettings {
  readonly sharedSubscriptionStrategy: SharedStrategy;
  readonly sharedDispatchAckEnabled: boolean;
}

/** A share group in the index: picks a member by the broker's settings. */
class RoutedGroup extends ShareGroup<Subscription> implements Group {
  readonly #settings: SharedSettings;

  constructor(name: string, filter: string, settings: SharedSettings) {
    super(name, filter);
    this.#settings = settings;
  }

  // named apart from ShareGroup.pick, which wants all circumstances
  choose(message: Message): Subscription | undefined {
    const { sharedSubscriptionStrategy, sharedDispatchAckEnabled } = this.#settings;
    return this.pick(
      sharedSubscriptionStrategy,
      message.origin?.identity ?? message.origin,
      sharedDispatchAckEnabled && message.qos > 0,
      Math.random
    );
  }

  mayReach(topic: string): boolean {
    return this.members.some(({ subscriber }) => mayReach(subscriber, this.filter, topic));
  }
}

type Routed = Subscription | RoutedGroup;

/** Who gets the messages of a topic: the index of subscriptions, and a cache of what it answered. */
export class Routing {
  /** Subscriptions, those in share groups among them; and these alone. */
  count = 0;
  sharedCount = 0;
  readonly #index = new FilterIndex<Routed>();
  readonly #groups = new TextMap<RoutedGroup>();
  readonly #cache: RouteCache<Route>;
  readonly #table: (Route | undefined)[] = new Array(PLACES).fill(undefined);
  /** Hashes of topics that came once: only those that come again are worth a place in the cache. */
  readonly #seen = new Int32Array(MARKS);
  readonly #settings: SharedSettings;
  #found: Routed[] = [];

  /** @param maxWeight bound of the cache: topics plus the subscribers they reach */
  constructor(settings: SharedSettings, maxWeight: number) {
    this.#settings = settings;
    this.#cache = new RouteCache({ maxWeight });
  }

  /** Filters in use, each counted once. */
  get filterCount(): number {
    return this.#index.filterCount;
  }

  filters(): Iterable<string> {
    return this.#index.filters();
  }

  /** Whether anybody has subscribed to anything under `$SYS`. */
  get isSystemHeard(): boolean {
    return this.#systemFilters > 0;
  }

  #systemFilters = 0;

  add(subscription: Subscription): void {
    const shared = parseSharedFilter(subscription.filter);
    this.count++;
    if (typeof shared === 'object') {
      this.sharedCount++;
      const key = `${shared.group}/${shared.filter}`;
      let group = this.#groups.get(key);
      if (group === undefined) {
        group = new RoutedGroup(shared.group, shared.filter, this.#settings);
        this.#groups.set(key, group);
        this.#index.add(shared.filter, group);
        this.changed(shared.filter);
      }
      group.add(subscription);
      this.#countSystem(shared.filter, 1);
      return;
    }
    this.#countSystem(subscription.filter, 1);
    this.#index.add(subscription.filter, subscription);
    this.changed(subscription.filter);
  }

  remove(subscription: Subscription): void {
    const shared = parseSharedFilter(subscription.filter);
    this.count--;
    if (typeof shared === 'object') {
      this.sharedCount--;
      this.#countSystem(shared.filter, -1);
      const key = `${shared.group}/${shared.filter}`;
      const group = this.#groups.get(key);
      if (group?.remove(subscription)) {
        this.#groups.delete(key);
        this.#index.delete(shared.filter, group);
        this.changed(shared.filter);
      }
      return;
    }
    this.#countSystem(subscription.filter, -1);
    this.#index.delete(subscription.filter, subscription);
    this.changed(subscription.filter);
  }

  /** The subscriptions under a filter have changed: cached routes that it concerns no longer hold. */
  changed(filter: string): void {
    if (isWildcard(filter)) this.#cache.invalidateAll();
    else this.#cache.invalidate(filter);
  }

  isFresh(route: Route): boolean {
    return !route.stale && route.generation === this.#cache.generation;
  }

  /** The route of a topic name known to be valid. */
  of(topic: string): Route {
    return this.#cache.get(topic) ?? this.#compute(topic, Buffer.from(topic));
  }

  /**
   * The route of the topic in `buf[start, end)`, found by its bytes where it has been used lately.
   * @throws ProtocolError 0x81 for bytes that are not UTF-8, 0x90 for an empty name or one with a wildcard, 0x82 for U+0000
   */
  resolve(buf: Buffer, start: number, end: number): Route {
    let hash = end - start;
    const hashed = Math.min(end, start + HASHED_BYTES);
    for (let at = start; at < hashed; at++) hash = Math.imul(hash ^ buf[at], 0x0100_0193);
    const place = (hash ^ (hash >>> 15)) & (PLACES - 1);
    const known = this.#table[place];
    if (known !== undefined && isSameTopic(known.bytes, buf, start, end)) {
      if (this.isFresh(known)) return known;
      const route = this.#cache.get(known.topic) ?? this.#compute(known.topic, known.bytes);
      this.#table[place] = route.stale ? undefined : route;
      return route;
    }
    if (!checkUtf8(buf, start, end)) {
      throw new ProtocolError(ReasonCode.malformedPacket, 'the topic name is not well-formed UTF-8'); // [MQTT-1.5.4-1]
    }
    if (end === start) throw new ProtocolError(ReasonCode.protocolError, 'PUBLISH: the topic is empty'); // [MQTT-4.7.3-1]
    if (!checkTopicBytes(buf, start, end)) {
      throw new ProtocolError(ReasonCode.topicNameInvalid, 'a topic name has no wildcards'); // [MQTT-3.3.2-2]
    }
    const topic = buf.toString('utf8', start, end);
    const mark = hash & (MARKS - 1);
    if (this.#seen[mark] !== hash) {
      this.#seen[mark] = hash;
      const cached = this.#cache.get(topic);
      return cached ?? this.#match(topic, NO_BYTES);
    }
    const route = this.#cache.get(topic) ?? this.#compute(topic, copyOf(buf, start, end));
    if (!route.stale) this.#table[place] = route; // what the cache does not take, a very long topic perhaps, is not kept here
    return route;
  }

  #compute(topic: string, bytes: Buffer): Route {
    const route = this.#match(topic, bytes);
    this.#cache.set(topic, route);
    return route;
  }

  /** Ask the index. The route is good for this once: it is in no cache. */
  #match(topic: string, bytes: Buffer): Route {
    const found = this.#found;
    const count = this.#index.match(topic, found);
    const targets: Subscription[] = [];
    let groups: RoutedGroup[] | undefined;
    for (let at = 0; at < count; at++) {
      const routed = found[at];
      if (routed instanceof ShareGroup) {
        if (routed.mayReach(topic)) (groups ??= []).push(routed);
      } else if (mayReach(routed.subscriber, routed.filter, topic)) targets.push(routed);
    }
    found.length = 0;
    const merged = targets.length > 1 ? mergeBySubscriber(targets) : targets;
    return {
      topic,
      bytes,
      kind: kindOf(topic),
      levels: levelCount(topic),
      targets: merged.length === 0 ? NOBODY : merged,
      groups: groups ?? (NO_GROUPS as readonly RoutedGroup[]),
      stale: true,
      generation: 0,
      weight: 1 + merged.length + (groups?.length ?? 0)
    };
  }

  #countSystem(filter: string, by: number): void {
    if (filter.startsWith('$SYS')) this.#systemFilters += by;
  }
}

/** A topic's bytes, out of the read chunk and out of any pool. */
function copyOf(buf: Buffer, start: number, end: number): Buffer {
  const own = Buffer.allocUnsafeSlow(end - start);
  buf.copy(own, 0, start, end);
  return own;
}

/** One entry for each subscriber, in order of their first. */
function mergeBySubscriber(targets: readonly Subscription[]): Subscription[] {
  const bySubscriber = new Map<unknown, Subscription[] | Subscription>();
  for (const target of targets) {
    const known = bySubscriber.get(target.subscriber);
    if (known === undefined) bySubscriber.set(target.subscriber, target);
    else if (Array.isArray(known)) known.push(target);
    else bySubscriber.set(target.subscriber, [known, target]);
  }
  if (bySubscriber.size === targets.length) return targets as Subscription[];
  return [...bySubscriber.values()].map((one) => (Array.isArray(one) ? merge(one) : one));
}

function kindOf(topic: string): number {
  if (topic.charCodeAt(0) !== 0x24) return TopicKind.ordinary;
  if (topic === '$SYS' || topic.startsWith('$SYS/')) return TopicKind.system;
  return topic.startsWith('$delayed/') ? TopicKind.delayed : TopicKind.ordinary;
}
