import type { Route } from '../routing/subscription.ts';
import { isSameTopic } from '../topics/topic.ts';
import type { ConnectionOwner, ConnectionPorts } from './ports.ts';
import { Verdicts } from './verdicts.ts';

/**
 * What a connection knows of the topics that its client publishes to: the route of the last one, and what the hooks have decided.
 * Created with the first PUBLISH.
 */
export class PublishedTopics {
  /** Route of the last topic; undefined if it is stale. */
  #last: Route | undefined = undefined;
  /** `#last`, if runs of its topic may be forwarded and the client may publish to it. */
  #forRuns: Route | undefined = undefined;
  #verdicts: Verdicts | undefined = undefined;

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
   * @returns undefined if each message must be handled by itself
   * @throws ProtocolError see `route`
   */
  routeForRun<S extends ConnectionOwner>(
    session: S,
    ports: ConnectionPorts<S>,
    buf: Buffer,
    start: number,
    end: number
  ): Route | undefined {
    const { routing, publishing } = ports;
    const known = this.#forRuns;
    if (known !== undefined && isSameTopic(known.bytes, buf, start, end) && routing.isFresh(known)) return known;
    const route = this.#resolve(session, routing, buf, start, end);
    const mayRun = route.isForRuns && (!publishing.hooks.hasHooks || this.#verdicts?.get(route.topic) === 0);
    this.#forRuns = mayRun ? this.#last : undefined;
    return mayRun ? route : undefined;
  }

  /** Number of receivers of the last topic. */
  get receivers(): number {
    return this.#last === undefined ? 0 : this.#last.targets.length;
  }

  /** What the hooks have decided about the topics of the client. */
  get verdicts(): Verdicts {
    return (this.#verdicts ??= new Verdicts());
  }

  /** Ask the hooks again about all topics. */
  forgetVerdicts(): void {
    this.#verdicts = undefined;
    this.#forRuns = undefined;
  }
}
