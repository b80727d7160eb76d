import { TextMap } from '../base/text-map.ts';
import type { Message } from '../packets/message.ts';
import { readTopicName } from '../packets/topic-name.ts';
import {
  controlIn,
  isPrintable,
  isSameTopic,
  isWildcard,
  levelCount,
  parseSharedFilter,
  type SharedFilter
} from '../topics/topic.ts';
import { FilterIndex } from '../topics/trie.ts';
import { RouteCache } from './route-cache.ts';
import type { SharedStrategy } from './share-group.ts';
import { ShareGroup } from './share-group.ts';
import {
  type Group,
  mayReach,
  merge,
  type Route,
  type Subscriber,
  type Subscription,
  TopicKind
} from './subscription.ts';

/** Places of the table that finds a route by the bytes of its topic. */
const PLACES = 8192;
/** Marks of topics seen once; a power of two. */
const MARKS = 32_768;
/** Bytes of a topic that its place depends on. */
const HASHED_BYTES = 64;
/** Of FNV-1a. */
const PRIME = 0x0100_0193;

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
  /** Of the group among all. */
  readonly key: string;
  /** The filter without the share prefix. */
  readonly filter: string;
  readonly #mountpoint: string;
  readonly #settings: SharedSettings;

  /** @param mountpoint of its members */
  constructor(key: string, filter: string, mountpoint: string, settings: SharedSettings) {
    super();
    this.key = key;
    this.filter = filter;
    this.#mountpoint = mountpoint;
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

  get mayPersist(): boolean {
    return this.members.some(({ subscriber }) => subscriber.isPersisted);
  }

  get hasRoom(): boolean {
    return this.members.some(({ subscriber }) => subscriber.hasRoom);
  }

  mayReach(topic: string): boolean {
    return mayReach(this.#mountpoint, this.filter, topic);
  }
}

type Routed = Subscription | RoutedGroup;

/** A route as its owner sees it. */
type OwnRoute = { -readonly [K in keyof Route]: Route[K] } & {
  /** Its place in the table of bytes; -1: none. */
  place: number;
};

/** Who gets the messages of a topic: the index of subscriptions, and a cache of what it answered. */
export class Routing {
  /** Subscriptions, those in share groups among them; and these alone. */
  count = 0;
  sharedCount = 0;
  readonly #index = new FilterIndex<Routed>();
  readonly #groups = new TextMap<RoutedGroup>();
  /** Of each shared subscription. */
  readonly #groupOf = new Map<Subscription, RoutedGroup>();
  readonly #cache: RouteCache<OwnRoute>;
  readonly #table: (OwnRoute | undefined)[] = new Array(PLACES).fill(undefined);
  /** Hashes of topics that came once: only those that come again are worth a place in the cache. */
  readonly #seen = new Int32Array(MARKS);
  readonly #settings: SharedSettings;
  #found: Routed[] = [];
  /** Goes up with each change of the subscriptions. */
  #version = 0;

  /** @param maxWeight bound of the cache: topics plus the subscribers they reach */
  constructor(settings: SharedSettings, maxWeight: number) {
    this.#settings = settings;
    this.#cache = new RouteCache({ maxWeight, onRemove: (route) => this.#empty(route) });
  }

  /** Filters in use, each counted once. */
  get filterCount(): number {
    return this.#index.filterCount;
  }

  filters(): Iterable<string> {
    return this.#index.filters();
  }

  /** Whether a subscriber of this route has a session that is persisted. */
  persistsAny({ targets, groups }: Route): boolean {
    return targets.some(({ subscriber }) => subscriber.isPersisted) || groups.some(({ mayPersist }) => mayPersist);
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
      const group = this.#groupFor(shared, subscription.subscriber);
      group.add(subscription);
      this.#groupOf.set(subscription, group);
      this.#countSystem(shared.filter, 1);
      return;
    }
    this.#countSystem(subscription.filter, 1);
    this.#index.add(subscription.filter, subscription);
    this.changed(subscription.filter);
  }

  /** A group is one of its own under each mount point: its name and filter are the clients' words [MQTT-4.8.2-4]. */
  #groupFor({ group: name, filter }: SharedFilter, { mountpoint }: Subscriber): RoutedGroup {
    const key = groupKey(name, filter, mountpoint);
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = new RoutedGroup(key, filter, mountpoint, this.#settings);
      this.#groups.set(key, group);
      this.#index.add(filter, group);
      this.changed(filter);
    }
    return group;
  }

  /** The group of a shared subscription, also of one that has been removed, while somebody is in it. */
  groupOf({ filter, subscriber }: Subscription): Group | undefined {
    const shared = parseSharedFilter(filter);
    return typeof shared === 'object'
      ? this.#groups.get(groupKey(shared.group, shared.filter, subscriber.mountpoint))
      : undefined;
  }

  /** Whether a subscription is in a share group at present. */
  isShared(subscription: Subscription): boolean {
    return this.#groupOf.has(subscription);
  }

  remove(subscription: Subscription): void {
    const group = this.#groupOf.get(subscription);
    this.count--;
    if (group !== undefined) {
      this.sharedCount--;
      this.#groupOf.delete(subscription);
      this.#countSystem(group.filter, -1);
      if (group.remove(subscription)) {
        this.#groups.delete(group.key);
        this.#index.delete(group.filter, group);
        this.changed(group.filter);
      }
      return;
    }
    this.#countSystem(subscription.filter, -1);
    this.#index.delete(subscription.filter, subscription);
    this.changed(subscription.filter);
  }

  /** The subscriptions under a filter have changed: cached routes that it concerns no longer hold. */
  changed(filter: string): void {
    this.#version++;
    if (isWildcard(filter)) this.#cache.invalidateAll();
    else this.#cache.invalidate(filter);
  }

  /** Whether a route still says who gets the messages of its topic, cached or not. */
  isFresh(route: Route): boolean {
    return route.version === this.#version || (!route.isStale && route.generation === this.#cache.generation);
  }

  /** The route of a topic name known to be valid. */
  of(topic: string): Route {
    return this.#cache.get(topic) ?? (this.#isNew(hashOf(topic)) ? this.#match(topic) : this.#compute(topic));
  }

  /** The route itself, or where subscriptions have changed since, the one that holds now. */
  freshened(route: Route): Route {
    return this.isFresh(route) ? route : (this.#cache.get(route.topic) ?? this.#match(route.topic));
  }

  /** Whether a message of this topic would reach anybody. Not taken for a message: it makes no topic worth a place in the cache. */
  reachesAnybody(topic: string): boolean {
    const { targets, groups } = this.#cache.get(topic) ?? this.#match(topic);
    return targets.length > 0 || groups.length > 0;
  }

  /**
   * The route of the topic in `buf[start, end)`, found by its bytes where it has been used lately.
   * @throws ProtocolError as `readTopicName`
   */
  resolve(buf: Buffer, start: number, end: number): Route {
    let hash = end - start;
    const hashed = Math.min(end, start + HASHED_BYTES);
    for (let at = start; at < hashed; at++) hash = Math.imul(hash ^ buf[at], PRIME);
    const place = (hash ^ (hash >>> 15)) & (PLACES - 1);
    const known = this.#table[place];
    if (known === undefined || !isSameTopic(known.bytes, buf, start, end))
      return this.#lookUp(buf, start, end, hash, place);
    return this.isFresh(known) ? known : this.#renew(known);
  }

  /** Subscriptions have changed since a route in the table was computed. */
  #renew({ topic, bytes, place }: OwnRoute): Route {
    return this.#put(this.#cache.get(topic) ?? this.#compute(topic), place, bytes);
  }

  /** Find a topic that is not in the table by its name. */
  #lookUp(buf: Buffer, start: number, end: number, hash: number, place: number): Route {
    const isPlain = isPrintable(buf, start, end);
    const topic = readTopicName(buf, start, end, isPlain);
    let route = this.#cache.get(topic);
    if (this.#isNew(hash)) return route ?? this.#match(topic, isPlain);
    route ??= this.#compute(topic, isPlain);
    return this.#put(route, place, route.bytes.length > 0 ? route.bytes : copyOf(buf, start, end));
  }

  /** Have a route found by its bytes. What the cache does not take, a very long topic perhaps, is not kept here either. */
  #put(route: OwnRoute, place: number, bytes: Buffer): Route {
    if (route.isStale) return route;
    route.bytes = bytes;
    route.place = place;
    this.#table[place] = route;
    return route;
  }

  /** Whether a topic comes for the first time, as far as its mark tells; from now on it does not. */
  #isNew(hash: number): boolean {
    const mark = hash & (MARKS - 1);
    if (this.#seen[mark] === hash) return false;
    this.#seen[mark] = hash;
    return true;
  }

  #compute(topic: string, isPlain = false): OwnRoute {
    const route = this.#match(topic, isPlain);
    this.#cache.set(topic, route);
    return route;
  }

  /** A route has left the cache: whoever still holds it shall not hold its targets, which count against no bound any more. */
  #empty(route: OwnRoute): void {
    if (this.#table[route.place] === route) this.#table[route.place] = undefined;
    route.version = -1;
    route.bytes = NO_BYTES;
    route.targets = NOBODY;
    route.groups = NO_GROUPS;
  }

  /**
   * Ask the index. The route is good for this once: it is in no cache.
   * @param isPlain the topic is known to have no control characters
   */
  #match(topic: string, isPlain = false): OwnRoute {
    const found = this.#found;
    const count = this.#index.match(topic, found);
    const targets: Subscription[] = [];
    let groups: RoutedGroup[] | undefined;
    for (let at = 0; at < count; at++) {
      const routed = found[at];
      if (routed instanceof ShareGroup) {
        if (routed.mayReach(topic)) (groups ??= []).push(routed);
      } else if (mayReach(routed.subscriber.mountpoint, routed.filter, topic)) targets.push(routed);
    }
    found.length = 0;
    const merged = targets.length > 1 ? mergeBySubscriber(targets) : targets;
    return {
      topic,
      bytes: NO_BYTES,
      kind: kindOf(topic),
      levels: levelCount(topic),
      hasControls: !isPlain && controlIn(topic) !== undefined,
      targets: merged.length === 0 ? NOBODY : merged,
      groups: groups ?? (NO_GROUPS as readonly RoutedGroup[]),
      version: this.#version,
      isStale: true,
      generation: 0,
      weight: 1 + merged.length + (groups?.length ?? 0),
      place: -1
    };
  }

  #countSystem(filter: string, by: number): void {
    if (filter.startsWith('$SYS')) this.#systemFilters += by;
  }
}

/** Of a group among all: its name and filter under a mount point. */
function groupKey(name: string, filter: string, mountpoint: string): string {
  return `${mountpoint.length} ${name}/${filter}`;
}

/** The hash that `resolve` makes of the bytes, as long as they are ASCII; others are marked once for each way they come. */
function hashOf(topic: string): number {
  let hash = topic.length;
  const hashed = Math.min(hash, HASHED_BYTES);
  for (let at = 0; at < hashed; at++) hash = Math.imul(hash ^ topic.charCodeAt(at), PRIME);
  return hash;
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
