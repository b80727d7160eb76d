// Places the values of a command line in the requests of an action. A field is a parameter of the path if the path has it; else one of the query, if
// the operation has no body or names it; else a field of the body.

import { isPlainObject } from '../../../lib/adapter.ts';
import { InvalidInput } from '../../../lib/index.ts';
import type { AnyRequest } from '../../rest-client/index.ts';
import type { Action, ActionContext, ActionOperation, ActionRequest } from './action.ts';

/** Values of a command line by the fields that they set. Undefined ones are not sent. */
export type Fields = Readonly<Record<string, unknown>>;

/** The values of a request. */
export interface Values {
  readonly fields: Fields;
  /** The value of the JSON file; its fields yield to those of the command line. */
  readonly body?: unknown;
}

/** The arguments of an action, as its usage spells them. */
export function parametersOf({ usage }: ActionRequest): readonly string[] {
  return usage.split(' ').filter((word) => /^\[?[A-Z]/.test(word));
}

/** Read the values of a command line. @throws InvalidInput OPTION_INVALID if the file is not JSON or an argument is empty; BrokerError FILE_UNREADABLE */
export async function valuesOf(action: Action, context: ActionContext, given: readonly string[]): Promise<Values> {
  const { args = [], flags = [], fields: names = {}, constants } = action;
  const fields: Record<string, unknown> = { ...constants };
  let body: unknown;
  for (const [at, parameter] of parametersOf(action).entries()) {
    const text = given[at];
    if (text === undefined) continue;
    if (text === '' && action.operations.some(({ path }) => parametersIn(path).includes(args[at]))) {
      const name = parameter.replace(/[[\]]/g, '');
      throw new InvalidInput(
        'OPTION_INVALID',
        name,
        'a value',
        text,
        `${name} of "ctl ${action.usage}" must not be empty`
      );
    }
    const isFile = parameter.includes('FILE');
    if (args[at] === 'FILE') body = jsonOf(await context.read(text), text);
    else fields[args[at]] = isFile ? (await context.read(text)).trim() : text;
  }
  for (const flag of flags) fields[names[flag] ?? flag] ??= context.flags[flag];
  return { fields, body };
}

/**
 * The value of a JSON text.
 * @param name the name of the text or the file, for errors
 * @throws InvalidInput OPTION_INVALID
 */
export function jsonOf(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = `${name === '-' ? 'standard input' : name} is not JSON: ${(error as Error).message}`;
    throw new InvalidInput('OPTION_INVALID', 'FILE', 'JSON', text, message);
  }
}

/**
 * Send the request of an action.
 * @returns the data of the answer; of a list with pages, its rows as they arrive
 */
export async function answerTo(action: ActionRequest, context: ActionContext, values: Values): Promise<unknown> {
  const chosen = operationsFor(action, values.fields);
  if (!chosen[0].isList) return send(action, context, values, chosen[0]);
  return (async function* () {
    for (const operation of chosen)
      yield* context.client.list(
        operation.path as never,
        requestOf(operation, values) as never
      ) as AsyncIterable<object>;
  })();
}

/** Send one operation of an action. @returns the data of the answer */
export async function send(
  { usage }: ActionRequest,
  { client, streams }: ActionContext,
  values: Values,
  operation: ActionOperation
): Promise<unknown> {
  const { method, path } = operation;
  const request = requestOf(operation, values);
  if (usage.startsWith('stream ')) return streams.request(method, path, request);
  return (await client.request(method, path, request)).data;
}

/** The operations whose paths are filled by most of the fields. */
function operationsFor({ operations }: ActionRequest, fields: Fields): readonly ActionOperation[] {
  const usable = operations.filter(({ path }) => parametersIn(path).every((name) => fields[name] !== undefined));
  const most = Math.max(...usable.map(({ path }) => parametersIn(path).length));
  return usable.filter(({ path }) => parametersIn(path).length === most);
}

function requestOf({ path, hasBody, query: named = [] }: ActionOperation, { fields, body: file }: Values): AnyRequest {
  const params: Record<string, string> = {};
  const query: Record<string, string> = {};
  const body: Record<string, unknown> = {};
  const parameters = parametersIn(path);
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    if (parameters.includes(name)) params[name] = `${value}`;
    else if (!hasBody || named.includes(name)) query[name] = `${value}`;
    else body[name] = value;
  }
  if (!hasBody) return { params, query };
  return { params, query, body: merged(file, body) };
}

/**
 * The body of a file and the fields of the command line, which win.
 * @returns a file that is not an object unchanged: the server refuses it
 * @throws InvalidInput OPTION_INVALID if there are also fields
 */
export function merged(file: unknown, fields: Fields): unknown {
  if (file === undefined || isPlainObject(file)) return { ...file, ...fields };
  if (Object.values(fields).every((value) => value === undefined)) return file;
  const message = 'FILE must be a JSON object if flags or arguments give fields of it';
  throw new InvalidInput('OPTION_INVALID', 'FILE', 'a JSON object', file, message);
}

function parametersIn(path: string): readonly string[] {
  return [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name);
}
