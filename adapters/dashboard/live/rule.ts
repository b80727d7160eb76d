import { type ActionState, NotFound } from '../../../lib/index.ts';
import { crypto } from '../../rest/index.ts';
import { shownMetrics } from '../../streams-api/parts/index.ts';
import type { LiveKind, WatchContext } from './live-kind.ts';
import { textIn, wrong } from './params.ts';

interface RuleParams {
  /** A rule over events, or a stream rule. */
  readonly of: 'events' | 'streams';
  readonly id: string;
}

/** The state and the counters of a rule, in each second in which they have changed. Samples are read over the interface when `sampledAt` changes. */
export const RULE: LiveKind<RuleParams> = {
  read(params) {
    const of = textIn(params, 'of');
    if (of !== 'events' && of !== 'streams') throw wrong('of', '"events" or "streams"');
    return { of, id: textIn(params, 'id') };
  },
  async open(context, params) {
    const { broker, emit, everySecond } = context;
    let shown = '';
    let isBusy = false;
    const show = (found: object) => {
      const text = JSON.stringify(found);
      if (text !== shown) emit({ at: broker.clock.now(), ...found });
      shown = text;
    };
    show(await stateOf(context, params));
    const stop = everySecond(() => {
      if (isBusy) return;
      isBusy = true;
      stateOf(context, params)
        // a deleted rule: the next state is that of a new one with the same id
        .then(show, () => show({ state: 'gone' }))
        .finally(() => {
          isBusy = false;
        });
    });
    return { close: stop };
  }
};

/** @throws NotFound RULE_NOT_FOUND, STREAM_RULE_NOT_FOUND */
async function stateOf({ broker, hidesPayloads }: WatchContext, { of, id }: RuleParams): Promise<object> {
  if (of === 'streams') {
    const { state, code, text, metrics, sampledAt } = await broker.streams.rules.status(id);
    const definition = digestOf((await broker.streams.rules.get(id)) ?? {});
    return { state, code, text, metrics: shownMetrics(metrics, hidesPayloads), sampledAt, definition };
  }
  const rule = await broker.rules.get(id);
  if (rule === undefined) throw new NotFound('RULE_NOT_FOUND', `rule "${id}" does not exist`);
  const { state, reason, counters, actions, sampledAt, sql, description } = rule;
  const shown = actions.map((action) => shownAction(action, hidesPayloads));
  return { state, reason, counters, actions: shown, sampledAt, sql, description };
}

/** A short text that changes with the definition of a rule: the definition itself may be long, and is read over the interface. */
function digestOf(definition: object): string {
  return crypto().createHash('sha256').update(JSON.stringify(definition)).digest('base64url');
}

/** An action; without the message of its error, which has values of messages, for viewers who may not see these. */
function shownAction(action: ActionState, hidesPayloads: boolean): object {
  const { id, counters, size: waiting, lastError, fallbacks } = action;
  return {
    id,
    counters,
    waiting,
    lastError: hidesPayloads ? undefined : lastError?.message,
    fallbacks: fallbacks.map((fallback) => shownAction(fallback, hidesPayloads))
  };
}
