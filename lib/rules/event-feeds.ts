import { InvalidInput } from '../base/errors.ts';
import type { EventName } from '../events/catalogue.ts';
import type { BrokerEvents } from '../events/event-types.ts';
import type { Message } from '../packets/message.ts';
import type { QoS } from '../packets/types.ts';
import type { Shared, Watcher } from '../routing/watchers.ts';
import { encodeJson } from '../sql/json.ts';
import { CatalogueEvent } from './events/event.ts';
import type { RuleEventName } from './events/event-name.ts';
import { RULE_EVENTS } from './events/rows.ts';
import { ruleEventOfTopic } from './events/topics.ts';
import type { RulesHost } from './host.ts';
import type { Plan } from './plan.ts';

/** A rule that receives events. */
interface Receiver {
  readonly id: string;
  /** Position: rules with lower numbers are called first. */
  readonly order: number;
  run(event: CatalogueEvent): void;
}

/** The consumers of an event: rules, and the publication of the event as a message. */
interface Feed {
  readonly rules: Set<Receiver>;
  /** The rules in the order in which they were created; undefined if the set has changed. */
  sorted: readonly Receiver[] | undefined;
  publishQos: QoS | undefined;
  remove: (() => void) | undefined;
}

const SETTING = /^(on|off)(?:\s*,\s*qos([012]))?$/;

/** Passes the events of the broker to the rules, and publishes them as messages if the options say so. */
export class EventFeeds {
  readonly #host: RulesHost;
  readonly #context: { readonly node: string; now(): number };
  readonly #feeds = new Map<RuleEventName, Feed>();
  readonly #ignoresSystem: boolean;
  /** The events that are published as messages, with their QoS. */
  readonly #qosOf: ReturnType<typeof readEvents>;

  constructor(host: RulesHost) {
    this.#host = host;
    this.#context = { node: host.node, now: () => host.clock.now() };
    this.#qosOf = readEvents(host.options.events);
    this.#ignoresSystem = host.options.ignoreSysMessage ?? true;
  }

  /** Publish the events that the option `events` names. Called again at each start. */
  begin(): void {
    for (const [name, setting] of Object.entries(this.#qosOf)) {
      const feed = this.#feed(name as RuleEventName);
      feed.publishQos = setting;
      this.#update(name as RuleEventName, feed);
    }
  }

  /** Pass the events of a plan to its rule. @returns a function that ends this */
  attach(rule: Receiver, { filters, events }: Pick<Plan, 'filters' | 'events'>): () => void {
    const watcher: Watcher = {
      order: rule.order,
      watched: (message, shared) => {
        const event = this.#published(message, shared);
        if (event === undefined) return;
        if (shared.following === undefined) rule.run(event);
        else shared.following.rule(rule.id, () => rule.run(event));
      }
    };
    const ends = filters.map((filter) => this.#host.watch(filter, watcher));
    for (const name of events) ends.push(this.#add(name, rule));
    return () => {
      for (const end of ends.splice(0)) end();
    };
  }

  #add(name: RuleEventName, rule: Receiver): () => void {
    const feed = this.#feed(name);
    feed.rules.add(rule);
    feed.sorted = undefined;
    this.#update(name, feed);
    return () => {
      feed.rules.delete(rule);
      feed.sorted = undefined;
      this.#update(name, feed);
    };
  }

  /** The event of a published message, shared by all rules of its topic. Undefined if it reaches no rule. */
  #published(message: Message, shared: Shared): CatalogueEvent | undefined {
    if (shared.value !== undefined) return shared.value as CatalogueEvent;
    if (!this.#host.isSwitchedOn) return undefined;
    const { topic } = message;
    const isHidden =
      topic.charCodeAt(0) === 0x24 &&
      (topic.startsWith('$events/') || (this.#ignoresSystem && topic.startsWith('$SYS/')));
    if (isHidden) return undefined;
    const value = { message, client: this.#host.publisherOf(message) };
    const event = new CatalogueEvent(RULE_EVENTS['message.publish'], value, this.#context);
    shared.value = event;
    return event;
  }

  #feed(name: RuleEventName): Feed {
    let feed = this.#feeds.get(name);
    if (feed === undefined)
      this.#feeds.set(name, (feed = { rules: new Set(), sorted: undefined, publishQos: undefined, remove: undefined }));
    return feed;
  }

  /** Subscribe to the broker event while a rule uses it. */
  #update(name: RuleEventName, feed: Feed): void {
    const isHeard = feed.rules.size > 0 || feed.publishQos !== undefined;
    if (!isHeard) {
      feed.remove?.();
      feed.remove = undefined;
    } else feed.remove ??= this.#listen(name, feed);
  }

  #listen(name: RuleEventName, feed: Feed): () => void {
    const row = RULE_EVENTS[name];
    return this.#host.listen(row.source, (value: BrokerEvents[EventName]) => {
      if (!this.#host.isSwitchedOn || !row.accepts(value) || this.#isHidden(value)) return;
      const event = new CatalogueEvent(row, value, this.#context);
      feed.sorted ??= [...feed.rules].sort((a, b) => a.order - b.order);
      for (const rule of feed.sorted) rule.run(event);
      if (feed.publishQos !== undefined)
        this.#host.publishSystem(row.topic, encodeJson(event.columns()), feed.publishQos);
    });
  }

  /** Check whether the event is about a message of the broker itself. */
  #isHidden(value: object): boolean {
    const { message } = value as { message?: Message };
    return message !== undefined && (message.isSystem || (this.#ignoresSystem && message.topic.startsWith('$SYS/')));
  }
}

/**
 * Read the option `events`: the names of events with `on`, `off` or `on, qos1`. The default QoS is 1.
 * @throws InvalidInput OPTION_INVALID
 */
function readEvents(given: Readonly<Record<string, unknown>> = {}): Partial<Record<RuleEventName, QoS>> {
  const events: Partial<Record<RuleEventName, QoS>> = {};
  for (const [key, setting] of Object.entries(given)) {
    const name = ruleEventOfTopic(`$events/${key.replace('.', '_')}`);
    if (name === undefined || name === 'message.publish')
      throw new InvalidInput(
        'OPTION_INVALID',
        `rules.events.${key}`,
        'the name of an event such as client_connected',
        key
      );
    const [, state, qos = '1'] = SETTING.exec(String(setting).trim()) ?? [];
    if (state === undefined)
      throw new InvalidInput(
        'OPTION_INVALID',
        `rules.events.${key}`,
        '"off", "on", or "on" with a QoS, such as "on, qos1"',
        setting
      );
    if (state === 'on') events[name] = Number(qos) as QoS;
  }
  return events;
}
