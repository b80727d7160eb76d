// A sink as an action of broker rules. Each output becomes an item, as a row of a stream rule does with `sendSingle`;
// it waits in the outbox of the action. `enableCache` persists it, with the limits of the cache of a stream rule.

import { randomBytes } from 'node:crypto';
import { InvalidInput } from '../../base/errors.ts';
import { type FieldTable, fieldsOf } from '../../base/fields.ts';
import type { Cascade } from '../../packets/named-publisher.ts';
import type { Target, TargetLimits } from '../../targets/target.ts';
import { checkOpened } from '../../targets/type-checks.ts';
import type { Properties, SinkSetup, SinkType } from '../types.ts';
import type { Cause } from '../values/cause.ts';
import { outboxLimitsOf, sendEntry } from './cache.ts';
import { COMMON_SINK_PROPERTIES, type CommonProperties } from './common-properties.ts';
import { encodeEntry, MadeItem } from './item.ts';
import { planSink, type SinkPlanSetup } from './sink-plan.ts';

/** Common properties that concern rows of several emissions, or queues other than the outbox of the action. */
const WITHOUT_EFFECT = ['sendSingle', 'batchSize', 'lingerInterval', 'bufferLength', 'runAsync', 'cleanCacheAtStop'];

/** Properties of actions: those of the sink, and the common ones. */
const COMMON: FieldTable = Object.fromEntries(
  Object.entries(COMMON_SINK_PROPERTIES).filter(
    ([name, { about }]) => !WITHOUT_EFFECT.includes(name) && !about.startsWith('Accepted')
  )
);

/** An entry of the outbox of an action. */
interface SinkEntry {
  readonly id: string;
  readonly content: string | Buffer;
  readonly attempts: number;
  readonly cascade?: Cascade;
}

/** A sink that an action of a broker rule has opened. */
interface OpenSinkAction {
  /** The content of the entry for an output; undefined if there is nothing to send. @throws StreamFailure */
  prepare(row: Readonly<Record<string, unknown>>, cause: Cause | undefined): Buffer | undefined;
  readonly target: Target<readonly SinkEntry[]> & { readonly outbox: TargetLimits };
}

/** A sink type for actions of broker rules. */
export interface SinkAction {
  readonly name: string;
  readonly about: string;
  /** Undefined if the type does not name its properties. */
  readonly properties: FieldTable | undefined;
  /** The properties, with those of the connection that they name, as far as the sink knows them, and as it spells them. */
  connected(properties: Properties): Properties;
  /** @throws InvalidInput PROPERTY_INVALID; the errors of the sink if it cannot be used at all */
  open(properties: Properties, ruleId: string): Promise<OpenSinkAction>;
}

/** Settings and dependencies of a sink action. */
interface SinkActionSetup extends SinkPlanSetup, Pick<SinkSetup, 'dataDir' | 'clock' | 'log'> {
  warn(text: string): void;
  /** The properties, with all of those of the connection that they name. */
  connected(properties: Properties): Properties;
}

/** Create the action for a sink type. */
export function sinkAction(type: SinkType, setup: SinkActionSetup): SinkAction {
  const { name, about } = type;
  const table = type.properties && { ...COMMON, ...fieldsOf(type.properties) };
  return {
    ...{ name, about, properties: table },
    connected(given) {
      const all = setup.connected(given);
      if (table === undefined) return all;
      const names = new Map(Object.keys(table).map((key) => [key.toLowerCase(), key]));
      const known = Object.entries(all).flatMap(([key, value]) => {
        const name = Object.hasOwn(table, key) ? key : names.get(key.toLowerCase());
        const isOwn = Object.hasOwn(given, key);
        if (name === undefined) return isOwn ? [[key, value] as const] : []; // `open` refuses it
        if (value === null && !isOwn) return [];
        return [[name, value] as const];
      });
      return Object.fromEntries(known);
    },
    async open(given, ruleId) {
      const warn = (text: string) => {
        throw new InvalidInput('PROPERTY_INVALID', 'params', 'properties of the sink', undefined, text);
      };
      for (const each of Object.keys(given))
        if (
          WITHOUT_EFFECT.some((one) => one.toLowerCase() === each.toLowerCase()) &&
          !Object.hasOwn(type.properties ?? {}, each)
        )
          warn(`${name} sink: the property ${each} has no effect in an action of a broker rule; leave it out`);
      const plan = planSink(type, { ...given, sendSingle: true }, { ...setup, warn });
      const { properties, dynamic, encoder, transform } = plan;
      const kind = { ...{ properties, dynamic }, prefix: randomBytes(6).toString('base64url'), ...encoder };
      const cache = properties as unknown as CommonProperties;
      const opened = await type.open({
        ...{ ruleId, causeId: `rule/${ruleId}`, index: 0, properties, dataDir: setup.dataDir, clock: setup.clock },
        ...{ connected() {}, disconnected() {}, log: setup.log, warn: setup.warn }
      });
      const sink = checkOpened(opened, ['send', 'close'], `${type.name}.open()`, 'SINK_INVALID');
      return {
        prepare(row, cause) {
          const [output] = transform([row]);
          if (output === undefined) return undefined;
          return encodeEntry(new MadeItem(output, kind, 0, cause), kind, encoder.isJson);
        },
        target: {
          outbox: outboxLimitsOf(cache),
          async send(entries) {
            for (const entry of entries) await sendEntry(sink, entry, plan);
          },
          close: () => sink.close()
        }
      };
    }
  };
}
