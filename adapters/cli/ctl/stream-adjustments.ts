// Steps of actions of the interface of stream rules (`--rules-url`) in addition to sending the values of the command line. The service checks the
// content of bodies.

import type { Action, ActionContext } from './action.ts';
import { type Adjustment, actionsIn, CHECKED, changing, choice, incomplete, SAMPLES } from './adjustments.ts';
import { type Fields, merged, send } from './request.ts';

const PLUGIN_TYPES = ['sources', 'sinks', 'functions'];

/** A rule: the fields of the file, overridden by the id and the flags. */
const RULE: Adjustment = {
  input({ fields: { actions, ...fields }, body }, _, action) {
    const file = merged(body, { id: fields.id }) as Fields;
    if (fields.sql === undefined && file.sql === undefined) throw incomplete(action, 'FILE, or --sql and --action');
    const made = actionsIn(actions, (type, properties = {}) => ({ [type]: properties }));
    return { fields: { ...fields, actions: made }, body: file };
  }
};

/** A statement in a file, or in the flag `--sql`. */
const STATEMENT: Adjustment = {
  input(values, _, action) {
    if (values.fields.sql === undefined) throw incomplete(action, 'FILE or --sql');
    return values;
  }
};

const OF_TYPE = changing(({ type }) => ({ type: choice(type, PLUGIN_TYPES, 'TYPE') }));

/** The records that a list names, one after the other. */
async function* described(context: ActionContext, [type]: readonly string[], action: Action): AsyncGenerator<object> {
  const [list, one] = action.operations;
  if (type !== undefined) choice(type, PLUGIN_TYPES, 'TYPE');
  for (const name of (await send(action, context, { fields: { type } }, list)) as readonly string[])
    yield (await send(action, context, { fields: { type, name } }, one)) as object;
}

/** The rows of a test, and its errors. */
interface Tested {
  readonly emissions: readonly (readonly object[])[];
  readonly errors: readonly string[];
}

/** The adjustments of the actions for the interface of stream rules, by their fixed words. */
export const STREAM_ADJUSTMENTS: Readonly<Record<string, Adjustment>> = {
  'stream add': RULE,
  'stream change': RULE,
  'stream validate': RULE,
  'stream status': { times: 'none' },
  'stream topology': {
    output: ({ edges }: { readonly edges: Fields }) => Object.entries(edges).map(([node, next]) => ({ node, next }))
  },
  'stream check': CHECKED,
  'stream samples': SAMPLES,
  'stream test': {
    output({ emissions, errors }: Tested, { note }) {
      for (const error of errors) note(`error: ${error}`);
      return emissions.flat();
    },
    times: 'none'
  },
  'stream sql': STATEMENT,
  'stream replace-stream': STATEMENT,
  'stream replace-table': STATEMENT,
  'stream export': { output: (ruleset) => ({ lines: [JSON.stringify(ruleset)], isWhole: true }) },
  'stream plugins': { run: described },
  'stream functions': { run: described },
  'stream add-plugin': OF_TYPE,
  'stream drop-plugin': changing(({ type, restart }) => ({
    type: choice(type, PLUGIN_TYPES, 'TYPE'),
    restart: restart ? '1' : undefined
  })),
  'stream register': changing(({ functions }) => ({ functions: (functions as string).split(',') }))
};
