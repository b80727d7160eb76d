// Incoming QoS 2 ids are a bit set of at most 8 KiB, in memory and in the store. All 65,535 ids may wait
// (`maxAwaitingRel` 0) and none is forgotten (`awaitRelTimeout` 0; documented: 300 s), because forgetting one risks a
// duplicate delivery.

import { IdSet } from '../../base/collections/id-set.ts';
import type { Route } from '../../routing/route.ts';

/** A topic name that is rewritten or mounted before it is routed. */
interface MappedTopic {
  /** The topic name as the client sends it. */
  readonly given: string;
  readonly bytes: Buffer;
  /** The topic name that is routed. */
  readonly topic: string;
  readonly isRewritten: boolean;
  /** The route of the topic; undefined if it is stale. */
  readonly route: Route | undefined;
}

/**
 * The incoming messages of a session that are not complete: QoS 2 packet ids, messages on which a hook decides, and topic aliases.
 *
 * Created with the first such message of the session.
 */
export class InboundFlows {
  /** QoS 2 packet ids that wait for PUBREL. */
  awaitingRel: IdSet | undefined = undefined;
  /** Ids of `awaitingRel` on whose messages a hook still decides. They are not persisted: after a crash they count as not received. */
  undecided: Set<number> | undefined = undefined;
  /** Resolves when the publish hooks have decided on the last message that waits for them. */
  deciding: Promise<void> | undefined = undefined;
  /** The last topic that the client published to, if topics are rewritten or mounted. */
  mappedTopic: MappedTopic | undefined = undefined;
  /** Ids of `awaitingRel` that an earlier connection received. They do not count for the Receive Maximum of this connection. */
  #carriedOver: IdSet | undefined = undefined;
  /** Time at which each id of `awaitingRel` was received; only if the zone has an `awaitRelTimeout`. */
  #since: Map<number, number> | undefined = undefined;
  /** Topic names by the client's topic alias [MQTT-3.3.2-7]. */
  #topics: string[] | undefined = undefined;
  /** Topic names by alias as the client has sent them, where they are rewritten or mounted. */
  #given: Map<number, string> | undefined = undefined;

  // ------------------------------------------------------------------------------------------------------- QoS 2 packet ids

  /** Number of packet ids that wait for PUBREL. */
  get count(): number {
    return this.awaitingRel?.size ?? 0;
  }

  /** Number of them that count for the Receive Maximum of this connection [MQTT-3.3.4-7]. */
  get unacknowledged(): number {
    return this.count - (this.#carriedOver?.size ?? 0);
  }

  has(id: number): boolean {
    return this.awaitingRel?.has(id) === true;
  }

  /** Note that a packet id waits for PUBREL. @param nowMs time at which it was received; undefined if it does not expire */
  add(id: number, nowMs: number | undefined): void {
    (this.awaitingRel ??= new IdSet()).add(id);
    if (nowMs === undefined) return;
    (this.#since ??= new Map()).delete(id);
    this.#since.set(id, nowMs);
  }

  /** Count a packet id for this connection, because the client has repeated its PUBLISH. */
  repeated(id: number): void {
    this.#carriedOver?.delete(id);
  }

  /** Free a packet id. @returns false if it was not in use */
  forget(id: number): boolean {
    this.#carriedOver?.delete(id);
    return this.awaitingRel?.delete(id) ?? false;
  }

  /**
   * Free the packet ids that have waited for too long.
   * @param onExpired called for each of them
   * @returns monotonic milliseconds at which the next one expires
   */
  expire(nowMs: number, timeoutMs: number, onExpired: () => void): number {
    for (const [id, sinceMs] of this.#since ?? []) {
      if (sinceMs + timeoutMs > nowMs) return sinceMs + timeoutMs;
      this.#since?.delete(id);
      if (this.forget(id)) onExpired();
    }
    return Infinity;
  }

  /** Use the packet ids from the store. @param nowMs start of the time of those that expire, unless it is known */
  restore(ids: IdSet, nowMs: number | undefined): void {
    this.awaitingRel = ids.size > 0 ? ids : undefined;
    if (nowMs === undefined) return;
    for (const id of ids.values()) if (this.#since?.has(id) !== true) (this.#since ??= new Map()).set(id, nowMs);
  }

  /** Remove the packet ids from memory, because the store has them. */
  unload(): void {
    this.awaitingRel = undefined;
  }

  // ------------------------------------------------------------------------------------------------------------------ hooks

  /** Note that a hook decides on the message of a packet id. */
  hold(id: number): void {
    (this.undecided ??= new Set()).add(id);
  }

  /** True if a hook decides on the message of a packet id. */
  get isDeciding(): boolean {
    return this.undecided !== undefined && this.undecided.size > 0;
  }

  decided(id: number): void {
    this.undecided?.delete(id);
  }

  /** Wait until this promise resolves, because hooks decide on a message. */
  wait(decision: Promise<void>): void {
    const done = decision.then(() => {
      if (this.deciding === done) this.deciding = undefined;
    });
    this.deciding = done;
  }

  // ------------------------------------------------------------------------------------------------------------- connection

  /** Called when the client has connected. */
  attach(): void {
    this.#carriedOver = this.count > 0 ? new IdSet(this.awaitingRel) : undefined;
  }

  /** Called when the connection has closed. */
  detach(): void {
    this.#carriedOver = undefined;
    this.#topics = this.#given = undefined;
    this.mappedTopic = undefined;
  }

  /** Set a topic alias for the client. @param given the topic name that the client has sent */
  setAlias(alias: number, topic: string, given = topic): void {
    (this.#topics ??= [])[alias] = topic;
    if (given !== topic) (this.#given ??= new Map()).set(alias, given);
    else this.#given?.delete(alias);
  }

  /**
   * Map the topics of the client again, because rewriting has been started or stopped.
   * @param map returns the topic name that is routed; undefined: it is too long, and the client has to set the alias again
   */
  remap(map: (given: string) => string | undefined): void {
    const topics = this.#topics ?? [];
    this.mappedTopic = this.#topics = undefined;
    topics.forEach((topic, alias) => {
      const given = this.#given?.get(alias) ?? topic;
      const mapped = map(given);
      if (mapped !== undefined) this.setAlias(alias, mapped, given);
    });
  }

  /** The topic name of a topic alias; undefined if it has not been set. */
  topicOf(alias: number): string | undefined {
    return this.#topics?.[alias];
  }

  /** Store the result of mapping a topic name. */
  mapped(topic: MappedTopic): void {
    this.mappedTopic = topic;
  }
}
