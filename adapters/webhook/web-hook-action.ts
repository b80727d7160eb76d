import { type ActionType, compilePayload, compileTemplate } from '../../lib/adapter.ts';
import { BrokerError, InvalidInput, type Value } from '../../lib/index.ts';
import { headerValue, readHeaders } from './headers.ts';
import { DATA_TO_WEBSERVER_PARAMS } from './web-hook-params.ts';

/** The parts of a request that come from the action. The resource provides the rest. */
interface RequestParts {
  readonly method?: string | undefined;
  /** Path and query to append to those of the URL. */
  readonly path?: string | undefined;
  /** The template of the path, for messages of errors: values of messages are not shown. Undefined: the path has no values. */
  readonly template?: string | undefined;
  /** Keyed by lower-case names. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The action `data_to_webserver`: sends a request for each output. */
export const DATA_TO_WEBSERVER: ActionType = {
  name: 'data_to_webserver',
  app: 'emqx_web_hook',
  for: '$any',
  types: ['web_hook'],
  category: 'data_forward',
  title: { en: 'Data to Web Server', zh: '发送数据到 Web 服务' },
  description: {
    en: 'Send the output of the rule to a web server.',
    zh: '将规则的输出发送到 Web 服务器。'
  },
  params: DATA_TO_WEBSERVER_PARAMS,
  create(params) {
    const { payload_tmpl: payload, path, method } = params as { readonly [name: string]: string | undefined };
    const bodyOf = compilePayload(payload);
    const pathOf = path === undefined || path === '' ? undefined : compilePath(path);
    const headersOf = compileHeaders(params.headers);
    const fixed = method === undefined ? '' : JSON.stringify({ method });
    const template = path?.includes('${') ? path : undefined;
    const partsOf = (output: Value) =>
      JSON.stringify({ method, path: pathOf?.(output), template, headers: headersOf?.(output) } satisfies RequestParts);
    const hasTemplates = pathOf !== undefined || headersOf !== undefined;
    return {
      prepare: (output) => joined(hasTemplates ? partsOf(output) : fixed, bodyOf(output))
    };
  }
};

/** The content of an outbox entry: the parts from the action as a line of JSON, and the body. */
function joined(parts: string, body: string | Buffer): string | Buffer {
  return typeof body === 'string' ? `${parts}\n${body}` : Buffer.concat([Buffer.from(`${parts}\n`), body]);
}

/** Read the content of an entry. */
export function partsOf(content: string | Buffer): { readonly parts: RequestParts; readonly body: string | Buffer } {
  const end = content.indexOf('\n');
  const line = typeof content === 'string' ? content.slice(0, end) : content.toString('utf8', 0, end);
  const body = typeof content === 'string' ? content.slice(end + 1) : content.subarray(end + 1);
  return { parts: line === '' ? {} : (JSON.parse(line) as RequestParts), body };
}

/**
 * Compile a template of a path with a query. Values are percent-encoded, so that they can only be parts of the path or of a parameter.
 * @throws InvalidInput PARAM_INVALID
 */
function compilePath(template: string): (output: Value) => string {
  if (/[^\x21-\x7e]|#/.test(template)) {
    const expected = 'a path without spaces, "#" and characters other than ASCII; percent-encode them';
    throw new InvalidInput('PARAM_INVALID', 'path', expected, template);
  }
  const [, path, query] = /^([^?]*)(.*)$/.exec(template) as unknown as [string, string, string];
  const pathOf = compileTemplate(path, (value) => encodeURIComponent(value).replaceAll('%2F', '/'));
  const queryOf = compileTemplate(query, encodeURIComponent);
  return (output) => {
    const text = pathOf(output);
    // a server would resolve these segments
    if (/(^|\/)\.\.?(\/|$)/.test(text))
      throw new BrokerError('PATH_INVALID', `the path "${text}" has a segment "." or ".."`);
    return text + queryOf(output);
  };
}

/** @throws InvalidInput PARAM_INVALID */
function compileHeaders(given: unknown): ((output: Value) => Record<string, string>) | undefined {
  const templates = Object.entries(readHeaders(given)).map(([name, text]) => [name, compileTemplate(text)] as const);
  if (templates.length === 0) return undefined;
  return (output) => Object.fromEntries(templates.map(([name, textOf]) => [name, headerValue(name, textOf(output))]));
}
