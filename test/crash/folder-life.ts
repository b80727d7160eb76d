import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { levelStore } from '../../adapters/level/index.ts';
import { checkStore } from '../../lib/index.ts';
import { Random } from '../fuzz/random.ts';
import { AppPublisher } from './app-publisher.ts';
import { BrokerProcess, type BrokerSettings } from './broker-process.ts';
import { EventServer, rulesFor } from './event-server.ts';
import type { PowerDisk } from './power-disk.ts';
import { DELAY_SEC, Publisher, SHORT_SEC } from './publisher.ts';
import { RetainedReader } from './retained.ts';
import { Inbox, Subscriber } from './subscriber.ts';
import { Willed } from './willed.ts';
import { World } from './world.ts';

const DAY_SEC = 86_400;
/** The session expiry of 3.x clients (option sessionExpiryInterval). */
const ZONE_SEC = 7_200;
/** Time by which the clock is advanced at once: beyond SHORT_SEC and DELAY_SEC, not beyond ZONE_SEC. */
const AHEAD_MS = 3_700_000;
const MAX_MESSAGES = 3_000;
/** Real time after which missing messages are a failure. */
const PATIENCE_MS = 10_000;

/** Each start of the broker uses different settings, because the contents of a folder must not depend on them. */
const DURABILITIES = ['process', 'power'] as const;
const PRIORITIES: readonly BrokerSettings['priorities'][] = [
  {},
  { 't/0/q1/a': 9, 't/1/q2/a': 5, 's/2/q2': 1 },
  { 't/0/q1/a': 1, 't/2/q2/b': 7 }
];

/** The part of the broker that sends publishes to web servers, and persists its queue. */
export type Sender = 'webhook' | 'rule' | undefined;

/** Number of web servers. */
const SERVERS = { webhook: 1, rule: 2, none: 0 };

/** The result of a life on one folder. */
interface Outcome {
  readonly rounds: number;
  readonly kills: number;
  readonly messages: number;
  /** Requests of the webhook or the rule, and those among them that were repeated. */
  readonly events: number;
  readonly repeatedEvents: number;
  /** Number of losses of power. */
  readonly losses: number;
  /** The output of each start, and its duration. */
  readonly starts: readonly Pick<BrokerProcess, 'log' | 'readyMs'>[];
  readonly faults: readonly string[];
}

/**
 * Kills and restarts a broker on one folder, with clients that keep their state. The seed determines the actions and their times, but not
 * the state of the broker when it is killed, which depends on the machine.
 */
export class FolderLife {
  readonly folder: string;
  readonly #random: Random;
  readonly #world = new World();
  /** Set if a broker in an app, which publishes and whose clock is sometimes advanced, is used instead of the command. */
  readonly #app: AppPublisher | undefined;
  readonly #publishers: Publisher[];
  readonly #subscribers: Subscriber[];
  readonly #sleepers: Subscriber[];
  readonly #watcher: Subscriber;
  readonly #willed: Willed[];
  #broker: BrokerProcess | undefined;
  #kills = 0;
  #rounds = 0;
  #losses = 0;
  readonly #starts: BrokerProcess[] = [];
  readonly #from: string | undefined;
  readonly #disk: PowerDisk | undefined;
  readonly #sender: Sender;
  /** The web servers to which the broker sends. */
  readonly #servers: EventServer[];

  /**
   * @param sender the part that sends publishes to web servers; a rule only if the broker is not in an app, because its requests do not
   * wait for longer than an hour
   * @param from folder of a build of an earlier release, which uses the data folder until it is killed for the first time
   * @param disk the disk of the folder; it loses power whenever the broker is to crash under load
   */
  constructor(seed: number, isApp: boolean, sender: Sender, { from, disk }: { from?: string; disk?: PowerDisk } = {}) {
    this.folder = disk?.folder ?? mkdtempSync(join(tmpdir(), 'embermq-crash-'));
    this.#disk = disk;
    this.#from = from;
    this.#sender = sender;
    this.#random = new Random(seed);
    const world = this.#world;
    const random = () => new Random(this.#random.below(2 ** 31));
    const five = (clientId: string, expirySec = DAY_SEC) => ({
      clientId,
      version: 5 as const,
      expirySec,
      receiveMaximum: this.#random.pick([undefined, 3, 10, 40])
    });
    const four = (clientId: string, expirySec = ZONE_SEC) => ({ clientId, version: 4 as const, expirySec });
    this.#publishers = [five('p0'), four('p1'), five('p2', 0), four('p3', 0)].map(
      (options, at) => new Publisher(world, random(), { ...options, receiveMaximum: undefined }, at)
    );
    const group = new Inbox(world, 'share group');
    const sleeping = { isRestless: false };
    this.#sleepers = [
      new Subscriber(world, random(), five('s-away'), [['t/#', 2]], sleeping),
      new Subscriber(world, random(), five('s-expiring'), [['x/#', 1]], sleeping)
    ];
    this.#subscribers = [
      new Subscriber(world, random(), five('s0'), [['t/#', 2]]),
      new Subscriber(world, random(), four('s1'), [
        ['t/+/q1/#', 1],
        ['t/+/q2/a', 1]
      ]),
      new Subscriber(world, random(), five('s2'), [
        ['t/0/#', 2],
        ['t/1/#', 2],
        ['t/2/q2/#', 2]
      ]),
      new Subscriber(world, random(), five('s-short', SHORT_SEC), [['t/+/+/b', 2]]),
      new Subscriber(world, random(), five('g0'), [['$share/g/s/#', 2]], { inbox: group }),
      new Subscriber(world, random(), five('g1'), [['$share/g/s/#', 2]], { inbox: group }),
      ...this.#sleepers
    ];
    this.#watcher = new Subscriber(
      world,
      random(),
      five('watcher'),
      [
        ['w/#', 2],
        ['d/#', 2]
      ],
      sleeping
    );
    this.#willed = [
      new Willed(world, random(), four('w0', 0), 0),
      new Willed(world, random(), five('w1'), 0),
      new Willed(world, random(), five('w2'), DELAY_SEC)
    ];
    this.#app = isApp ? new AppPublisher(world, random()) : undefined;
    this.#servers = Array.from({ length: SERVERS[sender ?? 'none'] }, () => new EventServer(world, random()));
  }

  async run(rounds: number): Promise<Outcome> {
    const world = this.#world;
    try {
      for (const server of this.#servers) await server.open();
      await this.#start();
      this.#watcher.connect();
      await this.#until(
        () => this.#watcher.isSettled,
        () => ['the watcher is not subscribed']
      );
      for (const peer of this.#peers) peer.connect();
      while (this.#rounds < rounds && world.faults.length === 0) {
        await this.#round();
        this.#rounds++;
      }
    } catch (error) {
      world.fault(String((error as Error).stack));
    } finally {
      for (const peer of this.#peers) peer.rest();
      world.port = undefined;
      await this.#broker?.kill();
      for (const peer of this.#peers) peer.leave(false);
      for (const server of this.#servers) server.close();
      rmSync(`${this.folder}.config.json`, { force: true });
    }
    if (world.faults.length === 0 && this.#disk === undefined) rmSync(this.folder, { recursive: true });
    if (world.faults.length > 0) writeFileSync(`${this.folder}.journal`, world.journal.join('\n'));
    const messages = [...world.topics.values()].reduce((sum, { length }) => sum + length, 0);
    const sum = (what: 'requests' | 'repeated') => this.#servers.reduce((count, server) => count + server[what], 0);
    const [events, repeatedEvents] = [sum('requests'), sum('repeated')];
    return {
      ...{ rounds: this.#rounds, kills: this.#kills, losses: this.#losses, starts: this.#starts },
      ...{ messages, events, repeatedEvents, faults: world.faults }
    };
  }

  get #peers() {
    return [this.#watcher, ...this.#publishers, ...this.#subscribers, ...this.#willed];
  }

  /** Publishes load and kills the broker, once or twice; then waits until every promised message has arrived. */
  async #round(): Promise<void> {
    const random = this.#random;
    for (let left = 1 + random.below(2); left > 0; left--) {
      this.#load();
      await this.#momentOfDeath();
      await this.#crash();
      await this.#check(random.once(2));
      await this.#start();
      const isHasty = random.once(2);
      this.#world.isLoading = left > 1;
      for (const peer of this.#peers) if (isHasty || !(peer instanceof Willed)) peer.comeBack();
    }
    await this.#drained();
    await new RetainedReader(this.#world, random, { clientId: 'reader', version: 5, expirySec: 0 }).look();
    await Promise.all(this.#peers.map((peer) => peer.settled()));
    if (this.#broker?.complaints !== '') this.#world.fault(`the broker wrote: ${this.#broker?.complaints}`);
    for (const peer of this.#willed) peer.comeBack();
  }

  #load(): void {
    const world = this.#world;
    world.isLoading = true;
    world.budget = MAX_MESSAGES;
    for (const server of this.#servers) server.busy();
    for (const sleeper of this.#sleepers) {
      sleeper.wantsOnline = false;
      sleeper.leave(this.#random.once(2));
    }
    for (const subscriber of this.#subscribers) subscriber.busy();
    for (const publisher of this.#publishers) publisher.fill();
    if (this.#broker !== undefined) this.#app?.fill(this.#broker);
  }

  /** Waits for a number of acknowledgements and a little longer, or for a time. */
  async #momentOfDeath(): Promise<void> {
    const random = this.#random;
    const afterMs = random.below(600);
    if (random.once(2)) {
      await sleep(afterMs);
      return;
    }
    await Promise.race([this.#world.moreAcks(1 + random.below(MAX_MESSAGES / 2)), sleep(800)]);
    await sleep(random.below(4));
  }

  async #crash(): Promise<void> {
    this.#world.port = undefined;
    this.#kills++;
    this.#world.note('broker', 'is killed');
    if (this.#disk === undefined) await this.#broker?.kill();
    else await this.#losePower(this.#disk);
    this.#app?.lost();
    for (const peer of this.#peers) peer.rest();
    this.#world.isLoading = false;
    // Wait until the output of the killed broker has been read.
    while (this.#peers.some((peer) => peer.isOnline)) await sleep(1);
  }

  async #losePower(disk: PowerDisk): Promise<void> {
    this.#losses++;
    this.#broker?.stop();
    disk.copy();
    await this.#broker?.kill();
    disk.useCopy();
  }

  /**
   * Runs the checks of `embermq store check`.
   * @param isCopy whether to check a copy: the broker should also start on the unchanged folder, and opening a folder changes it
   */
  async #check(isCopy: boolean): Promise<void> {
    const folder = isCopy ? `${this.folder}-copy` : this.folder;
    if (isCopy) cpSync(this.folder, folder, { recursive: true });
    const { findings } = await checkStore(levelStore(folder));
    for (const { code, text } of findings) this.#world.fault(`store check: ${code}: ${text}`);
    if (isCopy) rmSync(folder, { recursive: true });
  }

  async #start(): Promise<void> {
    const world = this.#world;
    const random = this.#random;
    if (this.#app !== undefined && this.#kills > 0 && random.once(2)) {
      world.moveClock(AHEAD_MS, DELAY_SEC * 1000);
      for (const subscriber of [this.#watcher, ...this.#subscribers]) subscriber.clockMoved();
    }
    for (;;) {
      const settings = {
        durability: this.#disk === undefined ? random.pick(DURABILITIES) : ('power' as const),
        priorities: random.pick(PRIORITIES),
        aheadMs: this.#app === undefined ? undefined : world.aheadMs,
        build: this.#kills === 0 ? this.#from : undefined,
        webhook: this.#sender === 'webhook' ? this.#servers[0].options : undefined,
        rules: this.#sender === 'rule' ? rulesFor(this.#servers) : undefined
      };
      this.#broker = new BrokerProcess(this.folder, settings);
      this.#starts.push(this.#broker);
      const ready = this.#broker.ready();
      if (random.once(6) && settings.build === undefined) {
        // Kill the broker before it is ready.
        await sleep(random.below(400));
        await this.#broker.kill();
        await ready;
        this.#kills++;
        continue;
      }
      world.port = await ready;
      world.note('broker', `is ready: ${JSON.stringify(settings)}`);
      if (world.port === undefined) throw new Error('the broker ended before it was ready');
      return;
    }
  }

  async #drained(): Promise<void> {
    const world = this.#world;
    for (const server of this.#servers) server.calm();
    for (const peer of this.#peers) if (!(peer instanceof Willed)) peer.comeBack();
    const settling = [this.#watcher, ...this.#publishers, ...this.#subscribers];
    const missing = () => [
      ...settling.filter((peer) => !peer.isSettled).map(({ name }) => `${name} has unanswered requests`),
      ...(this.#app?.isSettled === false ? ['messages of the app are unanswered'] : []),
      ...world.missing()
    ];
    const isSettled = () => settling.every((peer) => peer.isSettled) && (this.#app?.isSettled ?? true);
    await this.#until(() => isSettled() && world.missing().length === 0, missing);
  }

  /** Gives up if none of the missing messages arrives for a while. A slow machine may take long for all of them. */
  async #until(isThere: () => boolean, missing: () => string[]): Promise<void> {
    let giveUpMs = performance.now() + PATIENCE_MS;
    let left = Infinity;
    while (!isThere() && this.#world.faults.length === 0) {
      if (performance.now() > giveUpMs) {
        const list = missing();
        if (list.length >= left) {
          for (const text of list.slice(0, 10)) this.#world.fault(text);
          if (list.length > 10) this.#world.fault(`and ${list.length - 10} more`);
          return;
        }
        left = list.length;
        giveUpMs = performance.now() + PATIENCE_MS;
      }
      await sleep(2);
    }
  }
}
