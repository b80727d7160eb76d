import { InvalidInput } from '../../lib/index.ts';
import type { Action } from './ctl-action.ts';

const COLUMNS = ['name', 'started', 'status', 'waiting', 'last_error'];

/** The options in a JSON file. @throws InvalidInput OPTION_INVALID */
function settingsOf(text: string, file: string): Readonly<Record<string, unknown>> {
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

/** Webhooks. */
export const CONNECTORS: readonly Action[] = [
  {
    usage: 'webhooks list',
    about: 'list the webhooks',
    columns: COLUMNS,
    run: ({ client }) => client.list('/x/webhooks')
  },
  {
    usage: 'webhooks show NAME',
    about: 'show a webhook with its options',
    run: async ({ client }, [name]) => ({ record: await client.get('/x/webhooks/{name}', { params: { name } }) })
  },
  {
    usage: 'webhooks add FILE',
    about: 'make a webhook of the options in a JSON file; -: standard input',
    run: async ({ client, read }, [file]) => {
      const body = settingsOf(await read(file), file);
      return { record: await client.post('/x/webhooks', { body }) };
    }
  },
  {
    usage: 'webhooks change NAME FILE',
    about: 'replace the options of a webhook by those in a JSON file; -: standard input',
    run: async ({ client, read }, [name, file]) => {
      const body = settingsOf(await read(file), file);
      return { record: await client.put('/x/webhooks/{name}', { params: { name }, body }) };
    }
  },
  {
    usage: 'webhooks start NAME',
    about: 'start a webhook',
    run: ({ client }, [name]) => client.post('/x/webhooks/{name}/start', { params: { name } })
  },
  {
    usage: 'webhooks stop NAME',
    about: 'stop a webhook; what waits stays',
    run: ({ client }, [name]) => client.post('/x/webhooks/{name}/stop', { params: { name } })
  },
  {
    usage: 'webhooks remove NAME',
    about: 'delete a webhook',
    run: ({ client }, [name]) => client.delete('/x/webhooks/{name}', { params: { name } })
  }
];
