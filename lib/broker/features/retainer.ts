import type { Pressure } from '../../monitor/machine/pressure.ts';
import type { Message } from '../../packets/message.ts';
import { type FeedEntries, RetainedFeed } from '../../retained/retained-feed.ts';
import { RetainedMessages } from '../../retained/retained-messages.ts';
import { RetainedRecords } from '../../retained/retained-records.ts';
import type { RetainedEntry } from '../../retained/retained-store.ts';
import { mayReach, type Subscription } from '../../routing/subscription.ts';
import type { Ledger } from '../../store/ledger.ts';
import { matches } from '../../topics/topic.ts';
import type { Services } from '../services.ts';
import type { Feature } from './feature.ts';
import { Stops } from './stops.ts';

/** Maximum number of losses that are recorded in `NOTED_MS`. */
const MAX_NOTED = 100;
const NOTED_MS = 100;

/**
 * Retains messages and provides them to new subscriptions. While it is stopped, the retained messages stay but are not delivered, and only
 * those of the broker (`$SYS`) are replaced, so that they are up to date at the next start.
 */
export class Retainer implements Feature {
  readonly name = 'retainer';
  readonly about = 'Retains messages and sends them to new subscriptions.';
  readonly stops: Stops;
  isStarted = false;
  readonly messages: RetainedMessages;
  /** The source of retained messages for feeds. */
  readonly feedSource: FeedEntries;
  readonly #services: Services;
  readonly #pressure: Pressure;
  /** undefined: there is no store. */
  readonly #records: RetainedRecords | undefined;
  /** Losses since this monotonic time. */
  #noted = 0;
  #notedSinceMs = -Infinity;

  constructor(services: Services, pressure: Pressure, ledger: Ledger | undefined) {
    this.#services = services;
    this.stops = new Stops(() => services.clock.now());
    this.#pressure = pressure;
    const { wheel, time, settings } = services;
    this.messages = new RetainedMessages(wheel, time, settings, (topic) => {
      this.#noteLoss('retained_expired', topic, undefined, 'it has expired');
      this.#records?.removed(topic);
    });
    this.#records = ledger && new RetainedRecords(ledger, this);
    this.feedSource = this.#feedSource();
  }

  start(): void {
    this.isStarted = true;
    this.stops.end();
  }

  stop(): void {
    this.isStarted = false;
    this.stops.begin();
  }

  /** Retain a message. A message with an empty payload deletes the retained message of its topic. */
  retain(message: Message): void {
    const { metrics, reasons } = this.#services;
    const records = this.#records;
    const { messages } = this;
    const { count } = messages;
    if (!this.isStarted && !message.isSystem) {
      this.#refused(message, 'the feature `retainer` is stopped');
      return;
    }
    const before = records === undefined ? undefined : messages.stored(message.topic);
    const hasPlace = !this.#pressure.isSpaceLow || message.isSystem || messages.stored(message.topic) !== undefined;
    const isDeletion =
      message.bytes <= message.payloadAt && !message.isSystem && messages.lookUp(message.topic) !== undefined;
    const isTaken = hasPlace && messages.put(message);
    if (isDeletion) this.#noteDeletion(message.topic, message.clientId);
    else if (messages.count > count) reasons.retainedAgain(message.topic);
    if (!isTaken) this.#refused(message, this.#lackOf(message));
    if (!message.isSystem) records?.retained(message, isTaken && message.bytes > message.payloadAt, before);
    metrics.note('retained', messages.count);
  }

  /** The limit because of which a message was not retained. */
  #lackOf({ topic, bytes, payloadAt, isSystem }: Message): string {
    const { maxRetainedPayloadSize, maxRetainedMessages } = this.#services.settings;
    const payloadBytes = bytes - payloadAt;
    if (!isSystem && maxRetainedPayloadSize > 0 && payloadBytes > maxRetainedPayloadSize)
      return `its payload is larger than maxRetainedPayloadSize (${maxRetainedPayloadSize} bytes)`;
    if (this.#pressure.isSpaceLow && this.messages.stored(topic) === undefined)
      return 'the space of the store is used up';
    const isFull = maxRetainedMessages > 0 && this.messages.count >= maxRetainedMessages;
    return isFull ? `maxRetainedMessages (${maxRetainedMessages}) is reached` : 'maxRetainedBytes is reached';
  }

  #refused(message: Message, detail: string): void {
    this.#services.announcer.dropped(message, 'not_retained', undefined, undefined, { code: 'not_retained', detail });
  }

  /**
   * Delete the retained message of a topic, without a message to subscribers. While a commit that includes this fails, it is undone.
   * @returns false if there is none
   */
  delete(topic: string): boolean {
    const before = this.messages.lookUp(topic);
    if (before === undefined) return false;
    this.messages.delete(topic);
    if (!before.message.isSystem) this.#noteDeletion(topic, undefined);
    if (!before.message.isSystem) this.#records?.deleted(before);
    return true;
  }

  /** Record that there is no retained message any longer. @param publisher client id; '' for the app; undefined: an operator */
  #noteDeletion(topic: string, publisher: string | undefined): void {
    const by =
      publisher === undefined
        ? 'an operator or the app'
        : publisher === ''
          ? 'the app'
          : `client ${JSON.stringify(publisher)}`;
    const how = publisher === undefined ? 'deleted it' : 'deleted it with an empty payload';
    this.#noteLoss('retained_deleted', topic, publisher, `${by} ${how}`);
  }

  /** Record a loss. Of very many at a time, only the first ones: a record costs about as much as the loss itself. */
  #noteLoss(
    code: 'retained_deleted' | 'retained_expired',
    topic: string,
    publisher: string | undefined,
    detail: string
  ): void {
    const { reasons, time } = this.#services;
    if (time.nowMs - this.#notedSinceMs >= NOTED_MS) {
      this.#notedSinceMs = time.nowMs;
      this.#noted = 0;
    }
    if (++this.#noted <= MAX_NOTED) reasons.add(code, { topic, publisher, detail });
    else reasons.leaveOut();
  }

  /**
   * Retain a message from the store. @param seq its position in the order of retained messages; undefined: the store does not know it yet
   */
  restore(message: Message, seq: number | undefined): void {
    const { topic } = message;
    if (!this.messages.put(message, seq)) {
      this.#services.announcer.dropped(message, 'not_retained', undefined);
      this.#records?.removed(topic);
    } else if (seq === undefined) this.#records?.placed(topic);
  }

  /** Undo a change of a retained message whose commit failed. @param before the message to retain again; undefined: none */
  retainAgain(topic: string, before: RetainedEntry<Message> | undefined): void {
    if (before === undefined) this.messages.delete(topic);
    else this.messages.putBack(before);
    this.#services.metrics.note('retained', this.messages.count);
  }

  /** The feed of retained messages for a new subscription; undefined: there is nothing to send. Cheap, because the feed looks them up later. */
  feedFor(subscription: Subscription): RetainedFeed | undefined {
    const { filter } = subscription;
    if (!this.isStarted) return undefined;
    if (filter.startsWith('$share/') || filter.startsWith('$queue/')) return undefined;
    return this.messages.mayMatch(filter) ? new RetainedFeed(subscription, this.feedSource) : undefined;
  }

  #feedSource(): FeedEntries {
    const retainer = this;
    const { messages } = this;
    return {
      get next() {
        return messages.next;
      },
      get isOpen() {
        return retainer.isStarted;
      },
      find: ({ filter, subscriber }) => {
        const entries = messages.walk([filter]);
        return subscriber.mountpoint === '' ? entries : reachable(entries, subscriber.mountpoint, filter);
      },
      reaches: ({ filter, subscriber }, topic) =>
        matches(filter, topic) && mayReach(subscriber.mountpoint, filter, topic)
    };
  }
}

/** The entries that a subscriber with a mount point may receive. */
function* reachable(
  entries: Iterable<RetainedEntry<Message> | undefined>,
  mountpoint: string,
  filter: string
): Generator<RetainedEntry<Message> | undefined, void> {
  for (const entry of entries) if (entry === undefined || mayReach(mountpoint, filter, entry.topic)) yield entry;
}
