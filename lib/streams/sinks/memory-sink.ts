import { causedBy } from '../../packets/named-publisher.ts';
import { parseJson } from '../formats/json.ts';
import type { MemoryTopics } from '../memory-topics.ts';
import type { SinkType } from '../types.ts';
import { StreamFailure, type StreamValueObject } from '../values/values.ts';

/** Publishes outputs to a topic in memory, where sources of the type `memory` find them. Rows are not encoded. */
export function memorySink(topics: MemoryTopics): SinkType {
  return {
    name: 'memory',
    about: 'Publishes rows to a topic in the memory of the service, for sources of the type memory.',
    properties: {
      topic: { type: 'string', required: true, isTemplate: true, about: 'Topic, such as devices/result.' },
      keyField: {
        type: 'string',
        about: 'Column whose value identifies the rows of lookup tables. Default: the first column of their key.'
      },
      rowkindField: {
        type: 'string',
        about:
          'Column with the operation of lookup tables for a row: insert, update, upsert or delete. Default: insert for all rows.'
      }
    },
    open({ properties, ruleId, causeId = ruleId }) {
      const { keyField, rowkindField } = properties as { readonly keyField?: string; readonly rowkindField?: string };
      return {
        send(item) {
          const topic = String(item.property('topic'));
          const cause = causedBy(causeId, item.cause);
          topics.publish(topic, rowsOf(item.value), { topic, rule: ruleId }, { keyField, rowkindField, cause });
        },
        close: () => undefined
      };
    }
  };
}

/** The rows of an item; with a template, the object or objects that its JSON encodes. @throws StreamFailure */
function rowsOf(value: unknown): readonly StreamValueObject[] {
  const rows: unknown =
    typeof value === 'string' ? parseJson(value, 'memory sink: the output of the template is not valid JSON') : value;
  const list: readonly unknown[] = Array.isArray(rows) ? rows : [rows];
  if (list.every(isRow)) return list;
  throw new StreamFailure('memory sink: the output is neither a row nor a list of rows');
}

function isRow(value: unknown): value is StreamValueObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}
