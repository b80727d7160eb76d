// Routes are cached by topic name and found by the bytes of a topic in a table of fixed size. A topic is cached when
// it is used for the second time, so that topics that are used once displace nothing. A route is valid until a
// subscription, a watcher or a right that concerns it changes: each such change must call `changed` or
// `rightsChanged`, and code that held a route across a promise or a listener asks for `freshened`. Rights are decided
// with the route, not for each message; the members of a share group are decided for each message. A route that was
// removed from the cache is emptied at once, because the limit of the cache no longer covers its subscribers.

import { TextMap } from '../base/collections/text-map.ts';
import type { Pace } from '../base/pace.ts';
import type { TimingWheel } from '../base/timing-wheel.ts';
import type { Message } from '../packets/message.ts';
import { readTopicName } from '../packets/topic-name.ts';
import type { LevelNames } from '../topics/level-names.ts';
import type { NearFilters } from '../topics/near-search.ts';
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
import { FilterTree } from './filter-tree.ts';
import type { WantedNames } from './level-walk.ts';
import { ALL_RIGHTS, type ReceivingRights } from './receiving-rights.ts';
import { type Group, type Route, TopicKind } from './route.ts';
import { RouteCache } from './route-cache.ts';
import type { SharedStrategy } from './share-group.ts';
import { ShareGroup } from './share-group.ts';
import { mayReach, merge, type Subscriber, type Subscription, surelyFits } from './subscription.ts';
import { NO_SCHEMAS, type TopicSchema, TopicSchemas } from './topic-schemas.ts';
import { NO_WATCHERS, type Watcher, Watchers } from './watchers.ts';

/** Number of places in the table that finds a route by the bytes of its topic. */
const PLACES = 8192;
/** Number of marks for topics that were seen once; a power of two. */
const MARKS = 32_768;
/** Number of bytes at the start of a topic that its hash depends on. */
const HASHED_BYTES = 64;
/** The multiplier of the hash FNV-1a. */
const PRIME = 0x0100_0193;

const NO_BYTES = Buffer.alloc(0);
const NO_TARGETS: readonly Subscription[] = [];
const NO_GROUPS: readonly Group[] = [];

/** Options that determine how share groups select a member. */
export interface SharedSettings {
  readonly sharedSubscriptionStrategy: SharedStrategy;
  readonly sharedDispatchAckEnabled: boolean;
}

/** A share group in the index, which selects members according to the options of the broker. */
class RoutedGroup extends ShareGroup<Subscription> implements Group {
  /** The key of the group in `Routing`. */
  readonly key: string;
  /** The topic filter without the share prefix. */
  readonly filter: string;
  sampledAfterMs = 0;
  readonly #mountpoint: string;
  readonly #settings: SharedSettings;

  readonly #rights: ReceivingRights;

  /** @param mountpoint the mount point of the members */
  constructor(key: string, filter: string, mountpoint: string, settings: SharedSettings, rights: ReceivingRights) {
    super();
    this.key = key;
    this.filter = filter;
    this.#mountpoint = mountpoint;
    this.#settings = settings;
    this.#rights = rights;
  }

  /**
   * Select the member that receives a message, of those that may receive it. If the message may be too large for that member, select one
   * for which it is not, or otherwise one that accepts the largest packets.
   */
  choose(message: Message): Subscription | undefined {
    const { topic } = message;
    const isPermitted = this.#rights.isActive ? (member: Subscription) => this.#isPermitted(member, topic) : undefined;
    const chosen = this.#pick(message, isPermitted);
    if (chosen === undefined || surelyFits(message, chosen)) return chosen;
    let most = 0;
    const fits = (member: Subscription) => {
      if (isPermitted?.(member) === false) return false;
      most = Math.max(most, member.subscriber.maxFrame);
      return surelyFits(message, member);
    };
    const other = this.#pick(message, fits);
    if (other !== undefined || chosen.subscriber.maxFrame >= most) return other ?? chosen;
    return this.#pick(message, (member) => isPermitted?.(member) !== false && member.subscriber.maxFrame === most);
  }

  /** `ShareGroup.pick` with the options of the broker. */
  #pick(message: Message, isPermitted: ((member: Subscription) => boolean) | undefined): Subscription | undefined {
    const { sharedSubscriptionStrategy, sharedDispatchAckEnabled } = this.#settings;
    return this.pick(
      sharedSubscriptionStrategy,
      message.origin?.identity ?? message.origin,
      sharedDispatchAckEnabled && message.qos > 0,
      Math.random,
      isPermitted
    );
  }

  #isPermitted(member: Subscription, topic: string): boolean {
    const { receiver } = member.subscriber;
    return receiver === undefined || (!this.#rights.isRevoked(member) && this.#rights.mayReceive(receiver, topic));
  }

  sampled(untilMs: number): void {
    this.sampledAfterMs = untilMs;
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

/** A route with the fields that only `Routing` may change. */
type OwnRoute = { -readonly [K in keyof Route]: Route[K] } & {
  /** Position of the route in the table; -1 if it is not in the table. */
  place: number;
};

/** Finds the receivers of the messages of a topic: an index of all subscriptions, and a cache of its results. */
export class Routing {
  /** Number of subscriptions, including shared ones. */
  count = 0;
  /** Number of shared subscriptions. */
  sharedCount = 0;
  readonly #index = new FilterIndex<Routed>();
  readonly #tree: FilterTree;
  /** The subscriptions that were made with a mount point; that of their subscriber changes if it returns with another one. */
  readonly #mounted = new Set<Subscription>();
  readonly #groups = new TextMap<RoutedGroup>();
  /** The share group of each shared subscription. */
  readonly #groupOf = new Map<Subscription, RoutedGroup>();
  readonly #cache: RouteCache<OwnRoute>;
  readonly #table: (OwnRoute | undefined)[] = new Array(PLACES).fill(undefined);
  /** Hashes of topics that were used once. A topic is added to the cache when it is used again. */
  readonly #seen = new Int32Array(MARKS);
  readonly #settings: SharedSettings;
  readonly #rights: ReceivingRights;
  #found: Routed[] = [];
  readonly #watchers = new Watchers();
  readonly #schemas: TopicSchemas;
  /** Incremented by each change of subscriptions. */
  #version = 0;

  /**
   * @param maxWeight limit of the cache: number of topics plus number of the subscribers that they reach
   * @param rights decides which messages a subscriber may receive
   * @param schemas the schemas of payloads
   * @param wheel ends the tree of filters for readers of levels; undefined: only many changes of subscriptions end it
   */
  constructor(
    settings: SharedSettings,
    maxWeight: number,
    rights: ReceivingRights = ALL_RIGHTS,
    wheel?: Pick<TimingWheel, 'armLater'>,
    schemas = new TopicSchemas([])
  ) {
    this.#schemas = schemas;
    this.#settings = settings;
    this.#tree = new FilterTree(wheel);
    this.#rights = rights;
    this.#cache = new RouteCache({ maxWeight, onRemove: (route) => this.#clearRoute(route) });
  }

  /** Number of different topic filters in use. */
  get filterCount(): number {
    return this.#index.filterCount;
  }

  filters(): Iterable<string> {
    return this.#index.filters();
  }

  /**
   * Find subscriptions whose filter nearly matches a topic name, one for each filter and share group. Bounded: see `FilterIndex.near`.
   */
  near(topic: string): NearFilters<Subscription> {
    const { found, isComplete } = this.#index.near(topic);
    const near = found.map(({ value, count, ...rest }) =>
      value instanceof RoutedGroup
        ? { ...rest, value: value.members[0], count: value.members.length }
        : { ...rest, value, count }
    );
    return { found: near, isComplete };
  }

  /**
   * The subscriptions whose filter matches a topic name, each member of a share group on its own.
   * @returns undefined: there are mount points, so filters are not as their clients see them
   */
  matching(topic: string): Subscription[] | undefined {
    if (this.#mounted.size > 0) return undefined;
    const found: Routed[] = [];
    this.#index.match(topic, found);
    return found.flatMap((routed) => (routed instanceof RoutedGroup ? routed.members : routed));
  }

  /** The names of a level of the topic filters: see `FilterTree.level`. */
  level(prefix: string, part: WantedNames, pace: Pace): Promise<LevelNames> {
    return this.#tree.level(prefix, part, () => this.#index.filterLists(), pace);
  }

  /** Tell whether a topic filter has subscriptions. @param filter without a share prefix */
  hasFilter(filter: string): boolean {
    return this.#index.has(filter);
  }

  /** Tell whether a message would be persisted: retained, delayed, or queued for a persisted session. */
  persists({ retain, qos }: Message, { kind, targets, groups }: Route): boolean {
    if (retain || kind === TopicKind.delayed) return true;
    if (qos === 0) return false;
    return targets.some(({ subscriber }) => subscriber.isPersisted) || groups.some(({ mayPersist }) => mayPersist);
  }

  /** True if there is a subscription to topics under `$SYS`. */
  get isSystemHeard(): boolean {
    return this.#systemFilters > 0;
  }

  #systemFilters = 0;

  add(subscription: Subscription): void {
    const shared = parseSharedFilter(subscription.filter);
    this.count++;
    if (subscription.subscriber.mountpoint !== '') this.#mounted.add(subscription);
    if (typeof shared === 'object') {
      this.sharedCount++;
      const group = this.#groupFor(shared, subscription.subscriber);
      group.add(subscription);
      this.#groupOf.set(subscription, group);
      this.#countSystem(shared.filter, 1);
      return;
    }
    this.#countSystem(subscription.filter, 1);
    if (this.#index.add(subscription.filter, subscription)) this.#tree.add(subscription.filter);
    this.changed(subscription.filter);
  }

  /** Get or create a share group. Groups of different mount points are separate, although name and filter may be equal [MQTT-4.8.2-4]. */
  #groupFor({ group: name, filter }: SharedFilter, { mountpoint }: Subscriber): RoutedGroup {
    const key = groupKey(name, filter, mountpoint);
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = new RoutedGroup(key, filter, mountpoint, this.#settings, this.#rights);
      this.#groups.set(key, group);
      if (this.#index.add(filter, group)) this.#tree.add(filter);
      this.changed(filter);
    }
    return group;
  }

  /** Get the share group of a subscription, also after the subscription was removed. @returns undefined if the group has no members */
  groupOf({
    filter,
    subscriber
  }: Pick<Subscription, 'filter'> & { readonly subscriber: Pick<Subscriber, 'mountpoint'> }): Group | undefined {
    const shared = parseSharedFilter(filter);
    return typeof shared === 'object'
      ? this.#groups.get(groupKey(shared.group, shared.filter, subscriber.mountpoint))
      : undefined;
  }

  /** Tell whether a subscription is currently a member of a share group. */
  isShared(subscription: Subscription): boolean {
    return this.#groupOf.has(subscription);
  }

  remove(subscription: Subscription): void {
    this.#rights.forget(subscription);
    const group = this.#groupOf.get(subscription);
    this.count--;
    this.#mounted.delete(subscription);
    if (group !== undefined) {
      this.sharedCount--;
      this.#groupOf.delete(subscription);
      this.#countSystem(group.filter, -1);
      if (group.remove(subscription)) {
        this.#groups.delete(group.key);
        if (this.#index.delete(group.filter, group)) this.#tree.delete(group.filter);
        this.changed(group.filter);
      }
      return;
    }
    this.#countSystem(subscription.filter, -1);
    if (this.#index.delete(subscription.filter, subscription)) this.#tree.delete(subscription.filter);
    this.changed(subscription.filter);
  }

  /** Invalidate the cached routes that a topic filter affects. To be called after its subscriptions have changed. */
  changed(filter: string): void {
    this.#version++;
    if (isWildcard(filter)) this.#cache.invalidateAll();
    else this.#cache.invalidate(filter);
  }

  /** Tell whether a route is still valid, whether it is cached or not. */
  isFresh(route: Route): boolean {
    return route.version === this.#version || (!route.isStale && route.generation === this.#cache.generation);
  }

  /** Get the route of a topic name, which must be valid. */
  of(topic: string): Route {
    return this.#cache.get(topic) ?? (this.#isNew(hashOf(topic)) ? this.#match(topic) : this.#compute(topic));
  }

  /** Find the subscriptions that match a topic, and whose clients may not receive it; those of share groups are not among them. */
  withheld(topic: string): Subscription[] {
    const found: Routed[] = [];
    this.#index.match(topic, found);
    return found.filter(
      (routed) =>
        !(routed instanceof ShareGroup) &&
        mayReach(routed.subscriber.mountpoint, routed.filter, topic) &&
        !this.#isPermitted(routed, topic)
    ) as Subscription[];
  }

  /** Get the current route of a topic: the given route if it is still valid, otherwise a new one. */
  freshened(route: Route): Route {
    return this.isFresh(route) ? route : (this.#cache.get(route.topic) ?? this.#match(route.topic));
  }

  /** Get the route of a topic name. Does not count as a use of the topic, so it does not add the topic to the cache. */
  peek(topic: string): Route {
    return this.#cache.get(topic) ?? this.#match(topic);
  }

  /** Tell whether a topic has receivers. As `peek`, this does not count as a use of the topic. */
  hasReceivers(topic: string): boolean {
    const { targets, groups } = this.peek(topic);
    return targets.length > 0 || groups.length > 0;
  }

  /**
   * Get the route of the topic in `buf[start, end)`. Routes of recently used topics are found by their bytes.
   * @throws ProtocolError as `readTopicName` does
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

  /** Replace a route in the table that is no longer valid. */
  #renew({ topic, bytes, place }: OwnRoute): Route {
    return this.#put(this.#cache.get(topic) ?? this.#compute(topic), place, bytes);
  }

  /** Find the route of a topic that is not in the table by the topic name. */
  #lookUp(buf: Buffer, start: number, end: number, hash: number, place: number): Route {
    const isPlain = isPrintable(buf, start, end);
    const topic = readTopicName(buf, start, end, isPlain);
    let route = this.#cache.get(topic);
    if (this.#isNew(hash)) return route ?? this.#match(topic, isPlain);
    route ??= this.#compute(topic, isPlain);
    return this.#put(route, place, route.bytes.length > 0 ? route.bytes : copyOf(buf, start, end));
  }

  /** Add a route to the table. Routes that the cache has not accepted, for example of very long topics, are not added. */
  #put(route: OwnRoute, place: number, bytes: Buffer): Route {
    if (route.isStale) return route;
    route.bytes = bytes;
    route.place = place;
    this.#table[place] = route;
    return route;
  }

  /** Tell whether a topic is used for the first time, and mark it as used. Approximate: topics can share a mark. */
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

  /** Clear a route that was removed from the cache, because the limit of the cache no longer covers its targets. */
  #clearRoute(route: OwnRoute): void {
    if (this.#table[route.place] === route) this.#table[route.place] = undefined;
    route.version = -1;
    route.bytes = NO_BYTES;
    route.targets = NO_TARGETS;
    route.groups = NO_GROUPS;
    route.watchers = NO_WATCHERS;
  }

  /**
   * Compute a route from the index. The route is not cached and valid for one use.
   * @param isPlain true if the topic is known to have no control characters
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
      } else if (mayReach(routed.subscriber.mountpoint, routed.filter, topic) && this.#isPermitted(routed, topic))
        targets.push(routed);
    }
    found.length = 0;
    const kind = kindOf(topic);
    const watchers = this.#watchers.of(topic);
    const isObserved = watchers !== undefined;
    const schemas = this.#schemas.of(topic);
    const merged = targets.length > 1 ? mergeBySubscriber(targets) : targets;
    return {
      topic,
      bytes: NO_BYTES,
      kind,
      isObserved,
      isForRuns: kind === TopicKind.ordinary && !isObserved && schemas === NO_SCHEMAS,
      mustDecide: kind === TopicKind.system || schemas !== NO_SCHEMAS,
      schemas,
      watchers: watchers ?? NO_WATCHERS,
      levels: levelCount(topic),
      hasControls: !isPlain && controlIn(topic) !== undefined,
      targets: merged.length === 0 ? NO_TARGETS : merged,
      groups: groups ?? (NO_GROUPS as readonly RoutedGroup[]),
      version: this.#version,
      isStale: true,
      generation: 0,
      lastDrop: undefined,
      repeatedDrop: undefined,
      weight: 1 + merged.length + (groups?.length ?? 0) + (watchers?.length ?? 0),
      place: -1
    };
  }

  /** Tell whether a subscriber may receive the messages of a topic. Decided with the route, so it costs nothing for a single message. */
  #isPermitted(subscription: Subscription, topic: string): boolean {
    const { receiver, mountpoint } = subscription.subscriber;
    if (!this.#rights.isActive || receiver === undefined) return true;
    if (this.#rights.isRevoked(subscription)) return false;
    return (mountpoint === '' && !this.#rights.mayDeny(topic)) || this.#rights.mayReceive(receiver, topic);
  }

  /** Called when the rights of subscribers, or schemas, have changed. */
  rightsChanged(): void {
    this.#version++;
    this.#cache.invalidateAll();
  }

  /**
   * Watch the messages of the topics that match a filter. Runs of frames of these topics become single messages, which events report, too.
   * @param watcher undefined: only for the events
   * @returns a function that stops watching
   */
  watch(filter: string, watcher?: Watcher): () => void {
    const end = this.#watchers.add(filter, watcher);
    this.changed(filter);
    return () => {
      end();
      this.changed(filter);
    };
  }

  /**
   * Let a schema check or replace each message of the topics that match its filter, after all other schemas.
   * @returns a function that removes it
   */
  check(schema: TopicSchema): () => void {
    const remove = this.#schemas.add(schema);
    this.rightsChanged();
    return () => {
      remove();
      this.rightsChanged();
    };
  }

  #countSystem(filter: string, by: number): void {
    if (filter.startsWith('$SYS')) this.#systemFilters += by;
  }
}

/** The key of a share group: mount point, name and topic filter. */
function groupKey(name: string, filter: string, mountpoint: string): string {
  return `${mountpoint.length} ${name}/${filter}`;
}

/** Hash a topic name. Equal to the hash in `resolve` for ASCII; other topics have two hashes, and are marked once for each. */
function hashOf(topic: string): number {
  let hash = topic.length;
  const hashed = Math.min(hash, HASHED_BYTES);
  for (let at = 0; at < hashed; at++) hash = Math.imul(hash ^ topic.charCodeAt(at), PRIME);
  return hash;
}

/** Copy the bytes of a topic, so that neither the read chunk nor a pool is referenced. */
function copyOf(buf: Buffer, start: number, end: number): Buffer {
  const own = Buffer.allocUnsafeSlow(end - start);
  buf.copy(own, 0, start, end);
  return own;
}

/** Combine the subscriptions of each subscriber, in the order of their first subscriptions. */
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
