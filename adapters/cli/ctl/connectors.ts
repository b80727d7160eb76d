import { InvalidInput } from '../../../lib/index.ts';
import type { Action } from './action.ts';

const COLUMNS = ['name', 'started', 'status', 'waiting', 'last_error'];

/**
 * The options in a JSON file.
 * @param file the name of the file, for errors
 * @throws InvalidInput OPTION_INVALID
 */
export function settingsOf(text: string, file: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidInput(
      'OPTION_INVALID',
      'FILE',
      'a JSON object',
      text,
      `${file} is not JSON: ${(error as Error).message}`
    );
  }
}

/**
 * The actions for one kind of connector.
 * @param whenStopped the effect of a stop on its queue
 */
function actionsOf(kind: 'webhook' | 'bridge', whenStopped: string): readonly Action[] {
  const all = `/x/${kind}s` as const;
  const one = `${all}/{name}` as const;
  return [
    {
      usage: `${kind}s list`,
      about: `list the ${kind}s`,
      columns: COLUMNS,
      run: ({ client }) => client.list(all)
    },
    {
      usage: `${kind}s show NAME`,
      about: `show a ${kind} with its options`,
      run: async ({ client }, [name]) => ({ record: await client.get(one, { params: { name } }) })
    },
    {
      usage: `${kind}s add FILE`,
      about: `create a ${kind} with the options in a JSON file; -: standard input`,
      run: async ({ client, read }, [file]) => {
        const body = settingsOf(await read(file), file);
        return { record: await client.post(all, { body }) };
      }
    },
    {
      usage: `${kind}s change NAME FILE`,
      about: `replace the options of a ${kind} by those in a JSON file (-: standard input); its queue is dropped unless isPersisted is true`,
      run: async ({ client, read }, [name, file]) => {
        const body = settingsOf(await read(file), file);
        return { record: await client.put(one, { params: { name }, body }) };
      }
    },
    {
      usage: `${kind}s start NAME`,
      about: `start a ${kind}`,
      run: ({ client }, [name]) => client.post(`${one}/start`, { params: { name } })
    },
    {
      usage: `${kind}s stop NAME`,
      about: `stop a ${kind}; ${whenStopped}`,
      run: ({ client }, [name]) => client.post(`${one}/stop`, { params: { name } })
    },
    {
      usage: `${kind}s remove NAME`,
      about: `delete a ${kind} and its queue`,
      run: ({ client }, [name]) => client.delete(one, { params: { name } })
    }
  ];
}

/** Webhooks and bridges. */
export const CONNECTORS: readonly Action[] = [
  ...actionsOf('webhook', 'queued events are still sent'),
  ...actionsOf('bridge', 'its queue is kept')
];
