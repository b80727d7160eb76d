// Verdicts and listeners stay with the route. One authorizePublish hook, or one `message.publish` listener, used to
// close the fast path for all clients (2.2 and 2.0 times the CPU time of QoS 0 pairs). A hook registered with `cache:
// 'route'` is asked once for each connection and topic; the connection keeps up to 256 verdicts, and looks one up
// only when its topic changes. Adding or removing a hook, `broker.access.invalidate` and a re-authentication forget
// them. A listener with a topic filter marks the routes of its topics as observed. All other topics are forwarded as
// if there were neither (`npm run bench -- --only 'pairs100 q0 64B w20( hook| listener)?$'`).

import type { Route } from '../routing/route.ts';
import { isSameTopic } from '../topics/topic.ts';
import type { ConnectionOwner, ConnectionPorts } from './ports.ts';
import { type VerdictLimits, Verdicts } from './verdicts.ts';

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
 * The state of a connection about the topics that its client publishes to: the route of the last one, the topic aliases, and the decisions of
 * the hooks. Created with the first PUBLISH.
 */
export class PublishedTopics {
  /** Route of the last topic; undefined if it is stale. */
  #last: Route | undefined = undefined;
  /** `#last`, if runs of its topic may be forwarded and the client has the right to publish to it. */
  #forRuns: Route | undefined = undefined;
  #verdicts: Verdicts | undefined = undefined;
  /** The epoch of the verdicts. */
  #epoch = 0;
  /** The version of the verdicts for which `#forRuns` is valid, if there are hooks; it is valid until this time. */
  #runsVersion = 0;
  #runsDueMs = 0;
  /** The last topic that is rewritten or mounted. */
  mapped: MappedTopic | undefined = undefined;
  /** Topic names by the client's topic alias [MQTT-3.3.2-7]: as they are routed, and as the client has sent them. */
  #aliases: { readonly topic: string; readonly given: string }[] | undefined = undefined;

  /** The route of the topic in `buf[start, end)`. @throws ProtocolError for a topic that is invalid, or that the zone forbids */
  route<S extends ConnectionOwner>(
    session: S,
    { routing }: ConnectionPorts<S>,
    buf: Buffer,
    start: number,
    end: number
  ): Route {
    const last = this.#last;
    if (last !== undefined && isSameTopic(last.bytes, buf, start, end) && routing.isFresh(last)) return last;
    return this.#resolve(session, routing, buf, start, end);
  }

  #resolve<S extends ConnectionOwner>(
    session: S,
    routing: ConnectionPorts<S>['routing'],
    buf: Buffer,
    start: number,
    end: number
  ): Route {
    const route = routing.resolve(buf, start, end);
    session.checkRoute(route);
    this.#last = route.isStale ? undefined : route;
    return route;
  }

  /**
   * The route for a run of QoS 0 frames of the topic in `buf[start, end)`.
   * @returns undefined if each message must be handled separately
   * @throws ProtocolError see `route`
   */
  routeForRun<S extends ConnectionOwner>(
    session: S,
    ports: ConnectionPorts<S>,
    buf: Buffer,
    start: number,
    end: number
  ): Route | undefined {
    const { routing, publishing, time } = ports;
    const { hooks } = publishing;
    const known = this.#forRuns;
    if (known !== undefined && isSameTopic(known.bytes, buf, start, end) && routing.isFresh(known)) {
      if (!hooks.hasHooks || this.#isInForce(hooks.verdictEpoch, time.nowMs)) return known;
    }
    const route = this.#resolve(session, routing, buf, start, end);
    const mayRun =
      route.isForRuns && (!hooks.hasHooks || this.#mayPublish(route.topic, hooks.verdictEpoch, time.nowMs));
    this.#forRuns = mayRun ? this.#last : undefined;
    return mayRun ? route : undefined;
  }

  /** True if the verdict about `#forRuns` is still valid. */
  #isInForce(epoch: number, nowMs: number): boolean {
    return this.#epoch === epoch && this.#verdicts?.version === this.#runsVersion && nowMs < this.#runsDueMs;
  }

  /** True if the client is known to have the right to publish to a topic. */
  #mayPublish(topic: string, epoch: number, nowMs: number): boolean {
    const verdicts = this.#epoch === epoch ? this.#verdicts : undefined;
    if (verdicts?.get('publish', topic, nowMs)?.code !== 0) return false;
    this.#runsVersion = verdicts.version;
    this.#runsDueMs = verdicts.dueMs('publish', topic);
    return true;
  }

  /** Keep the result of mapping a topic name, for the next PUBLISH to it. */
  keepMapped(topic: MappedTopic): void {
    this.mapped = topic;
  }

  /** Set a topic alias for the client. @param given the topic name that the client has sent */
  setAlias(alias: number, topic: string, given = topic): void {
    (this.#aliases ??= [])[alias] = { topic, given };
  }

  /** The topic name of a topic alias, as it is routed; undefined if it has not been set. */
  topicOf(alias: number): string | undefined {
    return this.#aliases?.[alias]?.topic;
  }

  /**
   * Map the topics of the client again, because rewriting has been started or stopped.
   * @param map returns the topic name that is routed; undefined: it is too long, and the client has to set the alias again
   */
  remap(map: (given: string) => string | undefined): void {
    const aliases = this.#aliases ?? [];
    this.mapped = this.#aliases = undefined;
    aliases.forEach(({ given }, alias) => {
      const topic = map(given);
      if (topic !== undefined) this.setAlias(alias, topic, given);
    });
  }

  /** Number of receivers of the last topic. */
  get receivers(): number {
    return this.#last === undefined ? 0 : this.#last.targets.length;
  }

  /**
   * The decisions of the hooks and rules about the topics of the client.
   * @param epoch changes when the decisions about all clients must be made again
   */
  verdicts(limits: VerdictLimits, epoch: number): Verdicts {
    if (this.#epoch !== epoch) this.#verdicts = undefined;
    this.#epoch = epoch;
    return (this.#verdicts ??= new Verdicts(limits));
  }

  /** Ask the hooks again about all topics. */
  forgetVerdicts(): void {
    this.#verdicts = undefined;
    this.#forRuns = undefined;
  }
}
