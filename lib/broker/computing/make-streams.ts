import type { Outboxes } from '../../outbox/outboxes.ts';
import type { Message } from '../../packets/message.ts';
import { type Cascade, causedBy, countCaused, RulePublisher } from '../../packets/named-publisher.ts';
import type { ListenerHandle } from '../../records/listener.ts';
import { APP_RECEIVER, isWithheld, type ReceivingRights } from '../../routing/receiving-rights.ts';
import type { Routing } from '../../routing/routing.ts';
import type { Watcher } from '../../routing/watchers.ts';
import type { Ledger } from '../../store/ledger.ts';
import type { StreamRuleActions } from '../../streams/chart.ts';
import { isOwnServer } from '../../streams/own-server.ts';
import { streamRuleMachine } from '../../streams/rule/stream-rule.machine.ts';
import { type Cause, cascadeOf } from '../../streams/values/cause.ts';
import type { Actors, StartChart } from '../actors.ts';
import type { Tables } from '../configuration/tables.ts';
import type { Retainer } from '../features/retainer.ts';
import type { Publishing } from '../messages/publishing.ts';
import { publisherOf } from '../new-message.ts';
import type { Services } from '../services.ts';
import type { Rules } from './rules.ts';
import { StreamRecords } from './stream-records.ts';
import { STREAM_CONFIG_TABLE, STREAM_NOTES_TABLE, STREAM_RULES_TABLE, STREAMS_TABLE, Streams } from './streams.ts';

/** The parts of the broker that streams use. Some are created later. */
interface StreamParts {
  readonly ledger: Ledger | undefined;
  readonly actors: Actors;
  readonly routing: Routing;
  readonly publishing: Publishing;
  readonly retainer: Retainer;
  readonly access: { readonly deliveryRights: ReceivingRights };
  readonly kept: { readonly rules: Rules };
}

/** Tracks the message because of which rules publish: the cause of outputs without a cause. */
class MessageCauses {
  /** The message that rules evaluate now. */
  #cause: Message | undefined;
  /** Counter of the messages in its causal chain, before and after it; created with the first of them. */
  #cascade: Cascade | undefined;

  /** True while rules evaluate a message that has arrived: its time is the current one. */
  get isActive(): boolean {
    return this.#cause !== undefined;
  }

  /** The watcher, wrapped so that messages published during a call are known to be caused by the message that it sees. */
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

  /** @param cause the cause of the output @throws BrokerError RULE_LOOP */
  publisherOf(ruleId: string, cause: Cause | undefined): RulePublisher {
    const origin = this.#cause?.origin;
    const present = origin instanceof RulePublisher ? origin.chain : undefined;
    const chain = causedBy(ruleId, cause ?? present);
    const cascade = cascadeOf(cause);
    if (cascade !== undefined) countCaused(cascade);
    return new RulePublisher(chain, cascade ?? this.#counter());
  }

  #counter(): Cascade {
    return this.#cause === undefined ? { count: 0 } : (this.#cascade ??= { count: 0 });
  }
}

/** The retained messages of topics, oldest first; see `StreamMessages.retained`. */
function retainedMessages(
  { retainer, access }: Pick<StreamParts, 'retainer' | 'access'>,
  filters: readonly string[]
): Iterator<Message | undefined, void> {
  const entries = retainer.messages.walk(filters);
  const give = function* () {
    for (const entry of entries) {
      if (!retainer.isStarted) return;
      const isGiven = entry?.isLive && !isWithheld(access.deliveryRights, entry.message, APP_RECEIVER);
      yield isGiven ? entry.message : undefined;
    }
  };
  return give();
}

/** The parts that are created before streams. */
interface StreamBase {
  readonly tables: Tables;
  readonly outboxes: Outboxes;
  /** The attached listeners. */
  listeners(): Iterable<ListenerHandle>;
}

/** Create the streams of a broker. */
export function makeStreams(
  services: Services,
  parts: StreamParts,
  { tables, outboxes, listeners }: StreamBase
): { readonly streams: Streams; readonly streamRecords: StreamRecords | undefined } {
  const records = parts.ledger && new StreamRecords(parts.ledger);
  const { settings, work, events } = services;
  const clock = services.clock.internal ?? services.clock;
  const causes = new MessageCauses();
  let start: StartChart<StreamRuleActions> | undefined;
  const streams = new Streams({
    ...{ options: settings.streams, node: settings.node, clock, outboxes, records },
    failed: (error, during) => services.failed(error, during),
    definitions: tables.own(STREAMS_TABLE) as never,
    rules: tables.own(STREAM_RULES_TABLE) as never,
    notes: tables.own(STREAM_NOTES_TABLE) as never,
    configuration: tables.own(STREAM_CONFIG_TABLE) as never,
    get isOpen() {
      return parts.ledger?.isOpen ?? true;
    },
    startChart(actions, id) {
      start ??= parts.actors.starter<StreamRuleActions>(streamRuleMachine(), {
        key: 'rule',
        failed: (_, error, action) => services.failed(error, `the ${action} of a stream rule`),
        methodsFor: () => 'start, stop or delete of broker.streams.rules'
      });
      return start(actions, id);
    },
    watch(filters, watcher) {
      const own = causes.of(watcher);
      const ends = filters.map((filter) => parts.routing.watch(filter, own));
      return () => {
        for (const end of ends) end();
      };
    },
    retained: (filters) => retainedMessages(parts, filters),
    pause: () => services.turn.pause(),
    nextSlice: () => services.pause(),
    publisherOf,
    isOwn: (server) => isOwnServer(server, listeners()),
    publish: (input, ruleId, cause) =>
      parts.publishing.own.republish(input, causes.publisherOf(ruleId, cause), causes.isActive),
    prepare: (input, ruleId, cause) => parts.publishing.own.prepare(input, causes.publisherOf(ruleId, cause)),
    ruleActions: () => parts.kept.rules.actions(),
    reopenRules: (ids) => parts.kept.rules.reopen(ids),
    sinkCreated: () => parts.kept.rules.reconnect(),
    emit: (event, value) => events.emit(event, value),
    recorded: (code, error) => services.reasons.add(code, error),
    during: (promise) => work.forAWhile(promise),
    log: (text) => events.emit('streams.logged', { text }),
    warn: (text) => events.emit('streams.warned', { text })
  });
  return { streams, streamRecords: records };
}
