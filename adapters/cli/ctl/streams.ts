// A row for each action: `usage` is parsed for its words and parameters, `columns` are those of the table on a
// terminal. These actions use the interface of stream rules (`--rules-url`), not the management interface. A body
// comes from a file, from flags, or from both, in which case flags win; the service checks it.

import { InvalidInput } from '../../../lib/index.ts';
import type { PluginType } from '../../streams-plugins/index.ts';
import { type Action, type ActionContext, type ActionFlag, choice, type Output } from './action.ts';
import { settingsOf } from './connectors.ts';

/** A request body. Undefined fields are not sent. */
type Fields = Readonly<Record<string, unknown>>;
/** The service checks the content of the file. */
type RuleBody = { readonly id: string; readonly sql: string; readonly actions: Record<string, unknown>[] };

const RULE_FLAGS: readonly ActionFlag[] = ['sql', 'action'];
const PLUGIN_TYPES = ['sources', 'sinks', 'functions'] as const satisfies readonly PluginType[];
const PLUGIN_TYPES_TEXT = 'sources, sinks or functions';

/** The message in the answer to a command. */
function said(sentence: string): Output {
  return { lines: sentence.split('\n').filter((line) => line !== ''), isWhole: true };
}

/** @throws InvalidInput OPTION_INVALID */
function pluginType(text: string): PluginType {
  return choice(text, PLUGIN_TYPES, 'TYPE');
}

/**
 * The text of a file, or of the flag `--sql`.
 * @throws InvalidInput OPTION_MISSING
 */
async function statementOf({ flags, read }: ActionContext, file: string | undefined, usage: string): Promise<string> {
  const text = file === undefined ? flags.sql : await read(file);
  if (text !== undefined) return text.trim();
  throw new InvalidInput('OPTION_MISSING', '--sql', '--sql', undefined, `"ctl ${usage}" needs FILE or --sql`);
}

/**
 * A rule: the fields of the file, overridden by the flags.
 * @throws InvalidInput OPTION_MISSING
 */
async function ruleOf(context: ActionContext, id: string | undefined, file: string | undefined, usage: string) {
  const { sql, action: actions } = context.flags;
  const body: Fields = {
    ...(file === undefined ? {} : settingsOf(await context.read(file), file)),
    ...(id === undefined ? {} : { id }),
    ...(sql === undefined ? {} : { sql }),
    ...(actions.length === 0 ? {} : { actions: actions.map(actionOf) })
  };
  if (body.sql !== undefined) return body as unknown as RuleBody;
  const message = `"ctl ${usage}" needs FILE, or --sql and --action`;
  throw new InvalidInput('OPTION_MISSING', 'FILE', '--sql and --action', undefined, message);
}

/** The action in a flag: the type of its sink, or `TYPE={"a":1}` with its properties. */
function actionOf(text: string): Record<string, unknown> {
  const at = text.indexOf('=');
  if (at < 0) return { [text]: {} };
  const type = text.slice(0, at);
  return { [type]: settingsOf(text.slice(at + 1), `what follows "--action ${type}="`) };
}

/** Test a statement with sample rows. */
async function tested(context: ActionContext, file: string | undefined): Promise<Output> {
  const given = file === undefined ? {} : settingsOf(await context.read(file), file);
  const { sql } = context.flags;
  const body = { ...given, ...(sql === undefined ? {} : { sql }) } as { readonly sql: string };
  const { emissions, errors } = await context.streams.post('/ruletest', { body });
  for (const error of errors) context.note(`error: ${error}`);
  return emissions.flat();
}

/** The actions for streams or for tables. */
function definitions(kind: 'stream' | 'table'): readonly Action[] {
  // the paths of both have the same form
  const [list, one] = [`/${kind}s` as '/streams', `/${kind}s/{name}` as '/streams/{name}'];
  return [
    {
      usage: `stream ${kind}s`,
      about: `list the ${kind}s`,
      columns: ['name'],
      run: async ({ streams }) => (await streams.get(list)).map((name) => ({ name }))
    },
    {
      usage: `stream ${kind} NAME`,
      about: `show a ${kind}`,
      run: async ({ streams }, [name]) => ({ record: await streams.get(one, { params: { name } }) })
    },
    {
      usage: `stream replace-${kind} NAME [FILE]`,
      about: `replace a ${kind}, by the CREATE ${kind.toUpperCase()} of a file (-: standard input) or of --sql`,
      flags: ['sql'],
      run: async (context, [name, file]) => {
        const sql = await statementOf(context, file, `stream replace-${kind} NAME`);
        return said(await context.streams.put(one, { params: { name }, body: { sql } }));
      }
    },
    {
      usage: `stream drop-${kind} NAME`,
      about: `drop a ${kind}; with --force also if rules use it`,
      flags: ['force'],
      run: async ({ streams, flags: { force } }, [name]) =>
        said(await streams.delete(one, { params: { name }, query: { force } }))
    }
  ];
}

/** The action that starts, stops or restarts a rule. */
function command(word: 'start' | 'stop' | 'restart', about: string): Action {
  const path = `/rules/{id}/${word}` as '/rules/{id}/start';
  return {
    usage: `stream ${word} ID`,
    about,
    run: async ({ streams }, [id]) => said(await streams.post(path, { params: { id } }))
  };
}

const RULES: readonly Action[] = [
  {
    usage: 'stream list',
    about: 'list the stream rules with their status',
    columns: ['id', 'status', 'name', 'tags'],
    run: ({ streams }) => streams.get('/rules')
  },
  {
    usage: 'stream show ID',
    about: 'show a stream rule',
    run: async ({ streams }, [id]) => ({ record: await streams.get('/rules/{id}', { params: { id } }) })
  },
  {
    usage: 'stream add ID [FILE]',
    about:
      'create and start a stream rule, from a JSON file with sql and actions (-: standard input), from flags, or from both',
    flags: RULE_FLAGS,
    run: async (context, [id, file]) =>
      said(await context.streams.post('/rules', { body: await ruleOf(context, id, file, 'stream add ID') }))
  },
  {
    usage: 'stream change ID [FILE]',
    about: 'replace a stream rule, by a JSON file (-: standard input), flags, or both',
    flags: RULE_FLAGS,
    run: async (context, [id, file]) => {
      const body = await ruleOf(context, id, file, 'stream change ID');
      return said(await context.streams.put('/rules/{id}', { params: { id }, body }));
    }
  },
  command('start', 'start a stream rule'),
  command('stop', 'stop a stream rule; it stays defined'),
  command('restart', 'stop a stream rule, and start it again'),
  {
    usage: 'stream remove ID',
    about: 'drop a stream rule',
    run: async ({ streams }, [id]) => said(await streams.delete('/rules/{id}', { params: { id } }))
  },
  {
    usage: 'stream status ID',
    about: 'show the state and the metrics of a stream rule',
    times: 'none',
    run: async ({ streams }, [id]) => ({ record: await streams.get('/v2/rules/{id}/status', { params: { id } }) })
  },
  {
    usage: 'stream topology ID',
    about: 'list the nodes of a stream rule and what follows each',
    columns: ['node', 'next'],
    run: async ({ streams }, [id]) => {
      const { edges } = await streams.get('/rules/{id}/topo', { params: { id } });
      return Object.entries(edges).map(([node, next]) => ({ node, next }));
    }
  },
  {
    usage: 'stream explain ID',
    about: 'show the plan of a stream rule',
    run: async ({ streams }, [id]) => ({ record: await streams.get('/rules/{id}/explain', { params: { id } }) })
  },
  {
    usage: 'stream validate ID [FILE]',
    about: 'check a stream rule without creating it',
    flags: RULE_FLAGS,
    run: async (context, [id, file]) => {
      const body = await ruleOf(context, id, file, 'stream validate ID');
      return { record: await context.streams.post('/rules/validate', { body }) };
    }
  },
  {
    usage: 'stream test [FILE]',
    about: 'run a query over sample rows: a JSON file with sql and rows: [{"stream": "demo", "values": {"a": 1}}]',
    flags: ['sql'],
    times: 'none',
    run: (context, [file]) => tested(context, file)
  }
];

const PLUGINS: readonly Action[] = [
  {
    usage: 'stream plugins TYPE',
    about: `list the plugins of a type: ${PLUGIN_TYPES_TEXT}`,
    columns: ['name', 'version', 'functions'],
    run: async function* ({ streams }, [word]) {
      const type = pluginType(word);
      for (const name of await streams.get('/plugins/{type}', { params: { type } }))
        yield await streams.get('/plugins/{type}/{name}', { params: { type, name } });
    }
  },
  {
    usage: 'stream add-plugin TYPE NAME URL',
    about: `install a plugin from a zip archive (http, https or file); TYPE: ${PLUGIN_TYPES_TEXT}`,
    run: async ({ streams }, [type, name, file]) =>
      said(await streams.post('/plugins/{type}', { params: { type: pluginType(type) }, body: { name, file } }))
  },
  {
    usage: 'stream drop-plugin TYPE NAME',
    about: 'drop a plugin, which takes effect when the service restarts; with --force, the service stops now',
    flags: ['force'],
    run: async ({ streams, flags: { force } }, [type, name]) => {
      const query = force ? { query: { restart: '1' } } : {};
      return said(
        await streams.delete('/plugins/{type}/{name}', { params: { type: pluginType(type), name }, ...query })
      );
    }
  },
  {
    usage: 'stream functions',
    about: 'list the functions of plugins',
    columns: ['name', 'plugin'],
    run: async function* ({ streams }) {
      for (const name of await streams.get('/plugins/udfs'))
        yield await streams.get('/plugins/udfs/{name}', { params: { name } });
    }
  },
  {
    usage: 'stream register PLUGIN FUNCTIONS',
    about: 'register the functions that a plugin exports, separated by commas',
    run: async ({ streams }, [plugin_name, functions]) =>
      said(
        await streams.post('/plugins/functions/{plugin_name}/register', {
          params: { plugin_name },
          body: { functions: functions.split(',') }
        })
      )
  }
];

/** Streams, tables, their rules, and plugins: over the interface of `--rules-port`. */
export const STREAMS: readonly Action[] = [
  ...RULES,
  {
    usage: 'stream sql [FILE]',
    about:
      'execute CREATE, SHOW, DESCRIBE, EXPLAIN or DROP of a stream or table, of a file (-: standard input) or of --sql',
    flags: ['sql'],
    run: async (context, [file]) =>
      said(await context.streams.post('/streams', { body: { sql: await statementOf(context, file, 'stream sql') } }))
  },
  ...definitions('stream'),
  ...definitions('table'),
  {
    usage: 'stream export',
    about: 'print all streams, tables and stream rules as JSON',
    run: async ({ streams }) => ({ lines: [JSON.stringify(await streams.post('/ruleset/export'))], isWhole: true })
  },
  {
    usage: 'stream import FILE',
    about: 'create or replace the streams, tables and stream rules of an export (-: standard input)',
    run: async ({ streams, read }, [file]) =>
      said(await streams.post('/ruleset/import', { body: { content: await read(file) } }))
  },
  ...PLUGINS
];
