// A row for each action: `usage` is parsed for its words and parameters, `columns` are those of the table on a
// terminal. A body comes from a file, from flags, or from both, in which case flags win; the broker checks it. Names
// of fields are those of the REST interface, so that what is listed can be sent back.

import { InvalidInput } from '../../../lib/index.ts';
import type { Action, ActionContext, ActionFlag, Output } from './action.ts';
import { settingsOf } from './connectors.ts';

/** A request body. Undefined fields are not sent. */
type Fields = Readonly<Record<string, unknown>>;
/** The broker checks the content of the file. */
type RuleBody = { readonly rawsql: string };

const RULE_FLAGS: readonly ActionFlag[] = ['sql', 'action', 'description'];

/** The fields in a file, or none without a file. */
async function fieldsIn(file: string | undefined, { read }: ActionContext): Promise<Fields> {
  return file === undefined ? {} : settingsOf(await read(file), file);
}

/** A rule: the fields of the file, overridden by the flags. */
async function ruleOf(context: ActionContext, file: string | undefined): Promise<Fields> {
  const { sql, action: actions, description } = context.flags;
  return {
    ...(await fieldsIn(file, context)),
    ...(sql === undefined ? {} : { rawsql: sql }),
    ...(actions.length === 0 ? {} : { actions: actions.map(actionOf) }),
    ...(description === undefined ? {} : { description })
  };
}

/** The action in a flag: its name, or `NAME={"a":1}` with its parameters. */
function actionOf(text: string): Fields {
  const at = text.indexOf('=');
  if (at < 0) return { name: text };
  const name = text.slice(0, at);
  return { name, params: settingsOf(text.slice(at + 1), `what follows "--action ${name}="`) };
}

/** Change a rule. */
async function changed({ client }: ActionContext, id: string, body: Fields): Promise<Output> {
  return { record: await client.put('/rules/{id}', { params: { id }, body }) };
}

/** Evaluate a statement. */
async function tested(context: ActionContext, file: string | undefined): Promise<Output> {
  const { sql, ctx } = context.flags;
  const body = {
    ...(await fieldsIn(file, context)),
    ...(sql === undefined ? {} : { rawsql: sql }),
    ...(ctx === undefined ? {} : { ctx: settingsOf(ctx, '--ctx') })
  };
  const output = await context.client.post('/rules', { query: { test: true }, body: body as RuleBody });
  return Array.isArray(output) ? output.map(asRecord) : { record: asRecord(output) };
}

function asRecord(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : { value };
}

/**
 * Check that a request has a file or flags.
 * @throws InvalidInput OPTION_MISSING
 */
function checkGiven(given: Fields, usage: string, flags: string): void {
  if (Object.keys(given).length > 0) return;
  throw new InvalidInput('OPTION_MISSING', 'FILE', flags, undefined, `"ctl ${usage}" needs FILE or ${flags}`);
}

const RULE_COLUMNS = ['id', 'enabled', 'state', 'for', 'matched', 'passed', 'failed', 'description'];
const RESOURCE_COLUMNS = ['id', 'type', 'is_alive', 'waiting', 'description', 'last_error'];

/** Rules, their actions, and the resources of these. */
export const RULES: readonly Action[] = [
  {
    usage: 'rules list [PART]',
    about: 'list the rules; with PART, those whose id contains it',
    columns: RULE_COLUMNS,
    run: async function* ({ client }, [part]) {
      const query = part === undefined ? {} : { query: { _like_id: part } };
      for await (const rule of client.list('/rules', query)) {
        const { matched, passed, failed } = rule.metrics[0];
        yield { ...rule, matched, passed, failed };
      }
    }
  },
  {
    usage: 'rules show ID',
    about: 'show a rule with its actions and metrics',
    run: async ({ client }, [id]) => ({ record: await client.get('/rules/{id}', { params: { id } }) })
  },
  {
    usage: 'rules add [FILE]',
    about: 'create a rule from a JSON file with rawsql and actions (-: standard input), from flags, or from both',
    flags: ['id', ...RULE_FLAGS],
    run: async (context, [file]) => {
      const { id } = context.flags;
      const body = { ...(await ruleOf(context, file)), ...(id === undefined ? {} : { id }) };
      checkGiven(body, 'rules add', '--sql and --action');
      return { record: await context.client.post('/rules', { body: body as RuleBody }) };
    }
  },
  {
    usage: 'rules change ID [FILE]',
    about: 'change the parts of a rule that a JSON file (-: standard input) or flags name',
    flags: RULE_FLAGS,
    run: async (context, [id, file]) => {
      const body = await ruleOf(context, file);
      checkGiven(body, 'rules change ID', '--sql, --action or --description');
      return changed(context, id, body);
    }
  },
  {
    usage: 'rules enable ID',
    about: 'enable a rule',
    run: (context, [id]) => changed(context, id, { enabled: true })
  },
  {
    usage: 'rules disable ID',
    about: 'disable a rule; it keeps its metrics',
    run: (context, [id]) => changed(context, id, { enabled: false })
  },
  {
    usage: 'rules test [FILE]',
    about: 'evaluate a statement for an event, and print its output; without any action',
    flags: ['sql', 'ctx'],
    times: 'none',
    run: (context, [file]) => tested(context, file)
  },
  {
    usage: 'rules reset ID',
    about: 'set the metrics of a rule and its actions to 0',
    run: ({ client }, [id]) => client.put('/rules/{id}/reset_metrics', { params: { id } })
  },
  {
    usage: 'rules remove ID',
    about: 'delete a rule',
    run: ({ client }, [id]) => client.delete('/rules/{id}', { params: { id } })
  },
  {
    usage: 'rules events',
    about: 'list the topics of events with their columns',
    columns: ['event', 'columns'],
    run: ({ client }) => client.get('/rule_events')
  },
  {
    usage: 'actions list [TYPE]',
    about: 'list the actions that rules can have; with TYPE, those that can use resources of this type',
    columns: ['name', 'for', 'types', 'app', 'description.en'],
    run: ({ client }, [type]) =>
      type === undefined ? client.get('/actions') : client.get('/resource_types/{type}/actions', { params: { type } })
  },
  {
    usage: 'actions show NAME',
    about: 'show an action with its parameters',
    run: async ({ client }, [name]) => ({ record: await client.get('/actions/{name}', { params: { name } }) })
  },
  ...resourceActions()
];

function resourceActions(): readonly Action[] {
  return [
    {
      usage: 'resources list [TYPE]',
      about: 'list the resources, or those of a type',
      columns: RESOURCE_COLUMNS,
      run: ({ client }, [type]) =>
        type === undefined
          ? client.get('/resources')
          : client.get('/resource_types/{type}/resources', { params: { type } })
    },
    {
      usage: 'resources types [NAME]',
      about: 'list the types of resources, or show one with its parameters',
      columns: ['name', 'provider', 'description.en'],
      run: async ({ client }, [name]) =>
        name === undefined
          ? client.get('/resource_types')
          : { record: await client.get('/resource_types/{name}', { params: { name } }) }
    },
    {
      usage: 'resources show ID',
      about: 'show a resource, and whether its target can be reached',
      run: async ({ client }, [id]) => ({ record: await client.get('/resources/{id}', { params: { id } }) })
    },
    {
      usage: 'resources add FILE',
      about: 'create a resource from a JSON file with type and config (-: standard input)',
      flags: ['id'],
      run: async ({ client, read, flags: { id } }, [file]) => {
        const given = settingsOf(await read(file), file) as { readonly type: string };
        return { record: (await client.post('/resources', { body: { ...given, ...(id && { id }) } })) as object };
      }
    },
    {
      usage: 'resources change ID FILE',
      about: 'replace the config or the description of a resource by those in a JSON file (-: standard input)',
      run: async ({ client, read }, [id, file]) =>
        client.put('/resources/{id}', { params: { id }, body: settingsOf(await read(file), file) })
    },
    {
      usage: 'resources test FILE',
      about: 'check whether the target of a resource could be reached, without creating the resource',
      run: async ({ client, read }, [file]) => {
        const body = settingsOf(await read(file), file) as { readonly type: string };
        await client.post('/resources', { query: { test: true }, body });
        return undefined;
      }
    },
    {
      usage: 'resources start ID',
      about: 'connect to the target of a resource now',
      run: ({ client }, [id]) => client.post('/resources/{id}', { params: { id } })
    },
    {
      usage: 'resources remove ID',
      about: 'delete a resource that no rule uses, and its queue',
      run: ({ client }, [id]) => client.delete('/resources/{id}', { params: { id } })
    }
  ];
}
