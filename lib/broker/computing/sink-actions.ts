import { InvalidInput } from '../../base/errors.ts';
import { CatalogueEvent } from '../../rules/events/event.ts';
import type { ActionType, RuleEvent } from '../../rules/types.ts';
import { isObject } from '../../sql/values.ts';
import type { SinkAction } from '../../streams/sinks/sink-action.ts';
import { type Cause, chainOf } from '../../streams/values/cause.ts';

/** A sink of streams as an action type of rules. */
export function actionOf({ name, about, properties, connected, open }: SinkAction): ActionType {
  return {
    name,
    app: 'streams',
    category: 'data_forward',
    title: { en: `Sink ${name}`, zh: `Sink ${name}` },
    description: { en: about, zh: about },
    params: properties,
    connected(params) {
      try {
        return connected(params);
      } catch (error) {
        throw ofParam(error);
      }
    },
    async create(params, { ruleId }) {
      const { prepare, target } = await open(params, ruleId).catch((error: unknown) => {
        throw ofParam(error);
      });
      return {
        prepare: (output, event) => prepare(isObject(output) ? output : { value: output }, causeOf(event)) ?? null,
        target
      };
    }
  };
}

/** The error for a parameter, if it is one for a property. */
function ofParam(error: unknown): unknown {
  if (!(error instanceof InvalidInput) || error.code !== 'PROPERTY_INVALID') return error;
  const { field, expected, got, message } = error;
  return new InvalidInput('PARAM_INVALID', field, expected, got, message);
}

/** The rules and actions that caused an event. */
function causeOf(event: RuleEvent): Cause | undefined {
  return event instanceof CatalogueEvent ? chainOf(event.message?.origin) : undefined;
}
