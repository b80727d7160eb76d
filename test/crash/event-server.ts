import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Random } from '../fuzz/random.ts';
import { type Receiver, reaches, type Sent, type World } from './world.ts';

/** The behaviours of the server for requests; `down`: it closes their connections before it has read them. */
const MOODS = ['quick', 'quick', 'slow', 'silent', 'cuts', 'down'] as const;
/** Messages of these topics are sent by the webhook or the rule. None of them expires or is delayed. */
const FILTERS = ['t/+/q1/#', 't/+/q2/b'];

/**
 * A web server that receives the publishes of a webhook whose events are persisted, or those of an action of a rule. It outlives the broker. Every acknowledged message must
 * arrive, the messages of a client id in their order, and a request that is repeated must be the same, also after a crash.
 */
export class EventServer implements Receiver {
  /** Number of requests that were received. */
  requests = 0;
  /** Number of requests that repeat another. */
  repeated = 0;
  readonly #world: World;
  readonly #random: Random;
  #mood: (typeof MOODS)[number] = 'quick';
  readonly #pending = new Set<Sent>();
  /** The ids of the first requests for messages. */
  readonly #arrived = new Map<Sent, string>();
  /** The body of each id. */
  readonly #bodies = new Map<string, string>();
  /** The last message of each client id, without those that arrive again. */
  readonly #last = new Map<string, Sent>();
  readonly #server = createServer((request, response) => this.#receive(request, response));

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
    world.receivers.push(this);
  }

  async open(): Promise<this> {
    this.#server.on('connection', (socket) => {
      if (this.#mood === 'down') socket.destroy();
    });
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** The options of the webhook. Nothing is dropped because of its age, number or size. */
  get options(): object {
    return {
      url: this.#url,
      rules: FILTERS.map((topic) => ({ event: 'message.publish', topic })),
      isPersisted: true,
      maxEntries: 1_000_000,
      maxBytes: '1GB',
      maxAge: '365d',
      timeout: '1s',
      backOff: 10,
      maxBackOff: 200
    };
  }

  /** The configuration of a resource `web_hook` whose requests are persisted. */
  get resource(): object {
    return { url: this.#url, request_timeout: 1, persisted: true };
  }

  get #url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/events`;
  }

  /** Behave in another way from now on. */
  busy(): void {
    this.#mood = this.#random.pick(MOODS);
    this.#world.note('event server', `is ${this.#mood}`);
  }

  /** Answers every request from now on. */
  calm(): void {
    this.#mood = 'quick';
  }

  accepted(sent: Sent): void {
    if (FILTERS.some((filter) => reaches(filter, sent.topic)) && !this.#arrived.has(sent)) this.#pending.add(sent);
  }

  missing(): string[] {
    return [...this.#pending].map(({ topic, seq }) => `the event server misses ${topic} ${seq}`);
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    if (this.#mood === 'down') {
      request.socket.destroy();
      return;
    }
    const chunks: Buffer[] = [];
    request.on('error', () => {});
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      this.#take(String(request.headers['webhook-id']), Buffer.concat(chunks).toString());
      if (this.#mood === 'quick') response.end();
      else if (this.#mood === 'slow') setTimeout(() => response.end(), this.#random.below(20));
      else if (this.#mood === 'cuts' && this.#random.once(3)) request.socket.resetAndDestroy();
      else if (this.#mood === 'cuts') response.end();
      // silent: the request has been received, but is never answered
    });
  }

  #take(id: string, text: string): void {
    const { topic, payload, from_client_id: clientId } = JSON.parse(text) as Record<string, string>;
    const seq = Number.parseInt(payload, 10);
    const what = `event server: ${topic} ${seq} of ${clientId}, id ${id}`;
    const sent = this.#world.topics.get(topic)?.[seq];
    this.requests++;
    if (sent === undefined) {
      this.#world.fault(`${what}: no client sent it`);
      return;
    }
    const before = this.#bodies.get(id);
    if (before !== undefined && before !== text) this.#world.fault(`${what}: another body had this id`);
    if (before !== undefined) this.repeated++;
    this.#bodies.set(id, text);
    this.#pending.delete(sent);
    const firstId = this.#arrived.get(sent);
    if (firstId !== undefined) {
      // A message that its publisher sent twice may be two messages for the broker.
      if (firstId !== id && !sent.isRepeated) this.#world.fault(`${what}: it had the id ${firstId} before`);
      return;
    }
    this.#arrived.set(sent, id);
    const last = this.#last.get(clientId);
    if (last !== undefined && last.sentAt > sent.sentAt)
      this.#world.fault(`${what}: after ${last.topic} ${last.seq}, which was sent later`);
    this.#last.set(clientId, sent);
  }
}

/** The option `rules` with a rule that sends publishes to a first server, and each one to a second server when the first has answered. */
export function rulesFor(servers: readonly EventServer[]): object {
  const from = FILTERS.map((filter) => `"${filter}"`).join(', ');
  const resources = servers.map(({ resource }, at) => ({ id: `server-${at}`, type: 'web_hook', config: resource }));
  const actions = resources.map(({ id }) => ({ name: 'data_to_webserver', params: { $resource: id } }));
  const sql = `SELECT topic, payload, clientid as from_client_id FROM ${from}`;
  return { resources, rules: [{ id: 'to-servers', sql, actions, onActionFailed: 'stop' }] };
}
