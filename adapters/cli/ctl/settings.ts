import { BrokerError, InvalidInput } from '../../../lib/index.ts';
import { isStream, type ManagementClient, ManagementError } from '../../management/client/index.ts';
import type { Action, ActionContext, Output } from './action.ts';
import { writeWhole } from './file.ts';

/** The file name of standard input and standard output. */
const STANDARD = '-';

async function nodeOf(client: ManagementClient): Promise<string> {
  return (await client.get('/nodes'))[0].node;
}

/** The name of an option in the spelling of the interface: flags (`max-inflight`) have hyphens. */
function keyOf(given: string): string {
  const [, path, name] = /^(.*\.)?([^.]*)$/s.exec(given.replace(/^--/, '')) as RegExpExecArray;
  return (path ?? '') + name.replaceAll('-', '_');
}

async function* asLine(text: string): AsyncGenerator<string> {
  yield text;
}

/** Write text to a file, or to standard output. */
async function deliver(
  { flags, note }: ActionContext,
  file: string,
  lines: AsyncIterable<string>
): Promise<{ readonly lines: AsyncIterable<string>; readonly isWhole: true } | undefined> {
  if (file === STANDARD) return { lines, isWhole: true };
  let count = 0;
  const counted = async function* () {
    for await (const line of lines) {
      count++;
      yield `${line}\n`;
    }
  };
  await writeWhole(file, counted(), flags.force);
  note(`${file}: ${count === 1 ? 'written' : `${count} lines`}`);
  return undefined;
}

/** The lines of a backup. @throws ManagementError if its last line is missing */
async function* backupLines({ client, interruption }: ActionContext): AsyncGenerator<string> {
  let last = '';
  let count = 0;
  for await (const line of client.lines('POST', '/x/backup', { signal: interruption() })) {
    last = line;
    count++;
    yield line;
  }
  // a proxy may hide that the connection was lost
  if (!last.startsWith('{') || recordsIn(last) !== count)
    throw new ManagementError('the backup has ended early: its last line is missing');
}

/** The number of lines given by the last line of a backup; undefined: not a last line. */
function recordsIn(line: string): number | undefined {
  try {
    return (JSON.parse(line) as { readonly records?: number }).records;
  } catch {
    return undefined; // truncated
  }
}

/** The result of an import, section by section. @throws BrokerError IMPORT_FAILED after the rows, if entries were not imported */
async function* imported(
  { client, flags: { mode }, read }: ActionContext,
  [file]: readonly string[]
): AsyncGenerator<object> {
  const text = await read(file);
  const body = parsed(text, file === STANDARD ? 'standard input' : file) as {
    format: string;
    version: number;
    sections: object;
  };
  const { sections, errors } = await client.post('/x/import', { query: { mode }, body });
  for (const [section, counts] of Object.entries(sections)) yield { section, ...counts };
  if (errors.length === 0) return;
  const faults = errors.map(({ section, entry, message }) => `${section}: ${entry}: ${message}`);
  throw new BrokerError('IMPORT_FAILED', `some entries were not imported: ${faults.join('; ')}`);
}

/** Send any request. */
async function call({ client }: ActionContext, [method, path, json]: readonly string[]): Promise<Output> {
  const body = json === undefined ? {} : { body: parsed(json, 'the body') };
  const mark = path.indexOf('?');
  const [target, query] = mark < 0 ? [path, ''] : [path.slice(0, mark), path.slice(mark + 1)];
  const request = { ...body, query: Object.fromEntries(new URLSearchParams(query)) };
  const verb = method.toUpperCase();
  const place = target.startsWith('/') ? target : `/${target}`;
  if (isStream(verb, place)) return { lines: client.lines(verb, place, request) };
  const { data } = await client.request(verb, place, request);
  if (data === undefined) return undefined;
  return Array.isArray(data) ? data.map(asRecord) : { record: asRecord(data) };
}

function asRecord(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : { value };
}

/** @param what the name of the text in errors */
function parsed(json: string, what: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new InvalidInput('OPTION_INVALID', 'JSON', 'JSON', json, `${what} is not JSON: ${(error as Error).message}`);
  }
}

/** Options and plugins, and files of the configuration and the store. */
export const SETTINGS: readonly Action[] = [
  {
    usage: 'config list',
    about: 'list the options that can be read at run time, with their source',
    flags: ['source'],
    columns: ['key', 'value', 'source', 'origin', 'takes_effect'],
    run: ({ client, flags: { source } }) => client.list('/x/options', source === undefined ? {} : { query: { source } })
  },
  {
    usage: 'config get KEY',
    about:
      'show an option, by any of its spellings: zone.external.max_inflight, zones.external.maxInflight, max-inflight',
    run: async ({ client }, [key]) => ({
      record: await client.get('/x/options/{key}', { params: { key: keyOf(key) } })
    })
  },
  {
    usage: 'config set KEY VALUE',
    about: 'set an option; it stays set when the broker starts again',
    run: async ({ client }, [key, value]) => {
      await client.put('/configs/{app}', { params: { app: 'emqx' }, body: { key: keyOf(key), value } });
      return undefined;
    }
  },
  {
    usage: 'config reset KEY',
    about: 'remove what was set for an option at run time',
    run: ({ client }, [key]) => client.delete('/x/options/{key}', { params: { key: keyOf(key) } })
  },
  {
    usage: 'plugins list',
    about: 'list the features and sources that can be started and stopped',
    columns: ['name', 'active', 'type', 'description'],
    run: async ({ client }) => client.get('/nodes/{node}/plugins', { params: { node: await nodeOf(client) } })
  },
  ...(['load', 'unload', 'reload'] as const).map(
    (verb): Action => ({
      usage: `plugins ${verb} NAME`,
      about: {
        load: 'start a feature or source',
        unload: 'stop a feature or source',
        reload: 'stop a feature or source, and start it again'
      }[verb],
      run: async ({ client }, [plugin]) => {
        const params = { node: await nodeOf(client), plugin };
        await client.put(`/nodes/{node}/plugins/{plugin}/${verb}`, { params });
        return undefined;
      }
    })
  ),
  {
    usage: 'backup FILE',
    about: 'write a backup of the store to a new file, for "embermq store import"; - is standard output',
    flags: ['force'],
    run: (context, [file]) => deliver(context, file, backupLines(context))
  },
  {
    usage: 'export [FILE]',
    about:
      'write what was set at run time (credentials, rules, bans, options, ...) to a new file, or to standard output',
    flags: ['force'],
    run: async (context, [file = STANDARD]) => {
      const { data } = await context.client.request('GET', '/x/export', { signal: context.interruption() });
      return deliver(context, file, asLine(JSON.stringify(data, null, 2)));
    }
  },
  {
    usage: 'import FILE',
    about: 'import a file that "ctl export" has written; - is standard input',
    flags: ['mode'],
    columns: ['section', 'added', 'replaced', 'removed', 'skipped'],
    run: imported
  },
  {
    usage: 'call METHOD PATH [JSON]',
    about: 'send any request, and print the data of the answer: call GET /clients/a%2Fb',
    times: 'none',
    run: call
  }
];
