import { BrokerError } from '../base/errors.ts';
import type { Outboxes } from '../outbox/outboxes.ts';
import type { Message } from '../packets/message.ts';
import { RulePublisher } from '../packets/named-publisher.ts';
import type { ListenerHandle } from '../records/listener.ts';
import type { Routing } from '../routing/routing.ts';
import type { Watcher } from '../routing/watchers.ts';
import type { Ledger } from '../store/ledger.ts';
import type { StreamRuleActions } from '../streams/chart-actions.ts';
import { isOwnServer } from '../streams/own-server.ts';
import { streamRuleMachine } from '../streams/stream-rule.machine.ts';
import type { Actors, StartActor } from './actors.ts';
import { publisherOf } from './new-message.ts';
import type { Publishing } from './publishing.ts';
import type { Services } from './services.ts';
import { StreamRecords } from './stream-records.ts';
import { STREAM_RULES_TABLE, STREAMS_TABLE, Streams } from './streams.ts';
import type { Tables } from './tables.ts';

/** The parts of the broker that streams use. Some are made later. */
interface StreamParts {
  readonly ledger: Ledger | undefined;
  readonly actors: Actors;
  readonly routing: Routing;
  readonly publishing: Publishing;
}

/** Most rules that publish because of each other, one after the other. */
const MOST_HOPS = 16;

/** Ends circles of rules that publish the messages that they select from. */
class MessageCauses {
  /** The message that rules evaluate at present. */
  #cause: Message | undefined;
  /** Counts the messages that it has led to, or that have led to it; made when one does. */
  #cascade: { count: number } | undefined;

  /** A message has come, and rules evaluate it: its time is the present one. */
  get isActive(): boolean {
    return this.#cause !== undefined;
  }

  /** The watcher, so that messages published meanwhile are known to be caused by the one that it sees. */
  of(watcher: Watcher): Watcher {
    return {
      order: watcher.order,
      watched: (message, shared) => {
        const before = this.#cause;
        const cascade = this.#cascade;
        if (message !== before) {
          this.#cause = message;
          const { origin } = message;
          this.#cascade = origin instanceof RulePublisher ? origin.cascade : undefined;
        }
        try {
          watcher.watched(message, shared);
        } finally {
          this.#cause = before;
          this.#cascade = cascade;
        }
      }
    };
  }

  /** @throws BrokerError RULE_LOOP */
  publisherOf(ruleId: string): RulePublisher {
    const origin = this.#cause?.origin;
    if (!(origin instanceof RulePublisher)) return new RulePublisher([ruleId], this.#counter());
    const { chain } = origin;
    const fail = (why: string) => new BrokerError('RULE_LOOP', `rules publish because of each other: ${why}`);
    if (chain.includes(ruleId)) throw fail(`the stream rule ${ruleId} has led to this message already`);
    if (chain.length >= MOST_HOPS) throw fail(`more than ${MOST_HOPS} rules have led to this message`);
    return new RulePublisher([...chain, ruleId], this.#counter());
  }

  #counter(): { count: number } {
    return this.#cause === undefined ? { count: 0 } : (this.#cascade ??= { count: 0 });
  }
}

/** What was made before streams. */
interface StreamBase {
  readonly tables: Tables;
  readonly outboxes: Outboxes;
  /** The attached listeners. */
  listeners(): Iterable<ListenerHandle>;
}

/** Make the streams of a broker. */
export function makeStreams(
  services: Services,
  parts: StreamParts,
  { tables, outboxes, listeners }: StreamBase
): { readonly streams: Streams; readonly streamRecords: StreamRecords | undefined } {
  const records = parts.ledger && new StreamRecords(parts.ledger);
  const { settings, work, events, announcer } = services;
  const failed = (error: unknown, during: string) => announcer.failed(error, during, undefined);
  const clock = services.clock.internal ?? services.clock;
  const causes = new MessageCauses();
  let start: StartActor<StreamRuleActions> | undefined;
  const streams = new Streams({
    ...{ options: settings.streams, clock, outboxes, records, failed },
    definitions: tables.own(STREAMS_TABLE) as never,
    rules: tables.own(STREAM_RULES_TABLE) as never,
    get isOpen() {
      return parts.ledger?.isOpen ?? true;
    },
    startActor(actions, id) {
      start ??= parts.actors.logic(streamRuleMachine, 'rule', (_, error, action) =>
        failed(error, `the ${action} of a stream rule`)
      );
      return start(actions, id);
    },
    watch: (filter, watcher) => parts.routing.watch(filter, causes.of(watcher)),
    publisherOf,
    isOwn: (server) => isOwnServer(server, listeners()),
    publish: (input, ruleId) => parts.publishing.own.republish(input, causes.publisherOf(ruleId), causes.isActive),
    prepare: (input, ruleId) => parts.publishing.own.prepare(input, causes.publisherOf(ruleId)),
    emit: (event, value) => events.emit(event, value),
    during: (promise) => work.forAWhile(promise),
    log: (text) => events.emit('streams.logged', { text }),
    warn: (text) => events.emit('streams.warned', { text })
  });
  return { streams, streamRecords: records };
}
