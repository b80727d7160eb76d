// The requests of the actions of `embermq ctl`, from the column `ctl` of the rows of the REST interfaces. With the rows themselves, `ctl` would load
// all schemas.

/** Write the module with the requests. @param rows of the operations, in the order in which lists and paths are tried */
export function ctlActionsOf(rows) {
  const actions = new Map();
  for (const row of rows) {
    const { ctl = {} } = row;
    for (const [line, columns] of Object.entries(typeof ctl === 'string' ? { [ctl]: '' } : ctl)) {
      const action = actionOf(line, columns, row);
      const known = actions.get(action.name);
      if (known === undefined) actions.set(action.name, action);
      else {
        if (known.usage !== action.usage) throw new Error(`ctl: "${known.usage}" and "${action.usage}"`);
        actions.set(action.name, {
          ...known,
          columns: known.columns ?? action.columns,
          args: known.args.map((field, at) => (field === '' ? action.args[at] : field)),
          operations: [...known.operations, ...action.operations]
        });
      }
    }
  }
  const isEmpty = (value) => Object.keys(value ?? {}).length === 0;
  const lines = [...actions].map(([name, { name: _, ...request }]) => {
    const members = Object.entries(request).filter(([, value]) => typeof value === 'string' || !isEmpty(value));
    return `  '${name}': ${JSON.stringify(Object.fromEntries(members))},`;
  });
  return [
    '// Written from the operations by `node .ci/write-types`, and not in git.',
    "import type { ActionRequest } from './action.ts';\n",
    '/** The requests of the actions, by the fixed words of their command lines. */',
    'export const REQUESTS: Readonly<Record<string, ActionRequest>> = {',
    ...lines,
    '};\n'
  ].join('\n');
}

function actionOf(line, columns, { method, path, query, body, paged }) {
  const words = line.split(' ').map((word) => /^(\[?[A-Z]+|--[a-z]+|[a-z]\S*?)(?:=([^\]]*))?(\]?)$/.exec(word));
  const parameters = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name);
  const action = { name: '', usage: '', columns: columns === '' ? undefined : columns.split(' ') };
  const [args, flags, fields, constants] = [[], [], {}, {}];
  for (const [, word, value, end] of words) {
    if (word.startsWith('--')) {
      flags.push(word.slice(2));
      if (value !== undefined) fields[word.slice(2)] = value;
    } else if (/^[a-z]/.test(word) && value !== undefined) constants[word] = constantOf(value);
    else {
      action.usage += ` ${word}${end}`;
      if (/^[a-z]/.test(word)) action.name += ` ${word}`;
      else args.push(value ?? (/^\[?FILE$/.test(word) ? 'FILE' : (parameters.shift() ?? '')));
    }
  }
  const named = Object.keys(query?.properties ?? {}).filter(
    (field) => field in constants || !(field in (body?.properties ?? {}))
  );
  const operation = {
    method,
    path: path.replace(/:(\w+)/g, '{$1}'),
    ...(body === undefined ? {} : { hasBody: true, ...(named.length === 0 ? {} : { query: named }) }),
    ...(paged === undefined ? {} : { isList: true })
  };
  const { name, usage } = action;
  return { ...action, name: name.trim(), usage: usage.trim(), args, flags, fields, constants, operations: [operation] };
}

function constantOf(text) {
  return { true: true, false: false }[text] ?? text;
}
