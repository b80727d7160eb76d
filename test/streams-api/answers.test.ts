import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type StreamsApiOptions, streamsApi } from 'embermq/streams-api';
import { createTestBroker } from 'embermq/testing';
import { AUTHORIZATION, SECRET, serve } from '../support/management.ts';
import { FakePlugins } from './fake-plugins.ts';

interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly status: number;
  readonly form: string;
  readonly lines: readonly string[];
}

/** Read the exchanges of a file. */
function exchangesIn(file: string): Exchange[] {
  const text = readFileSync(join(import.meta.dirname, file), 'utf8');
  return text
    .split(/^> /m)
    .slice(1)
    .map((block) => {
      const [request, ...rest] = block
        .replace(/\n##.*/s, '\n')
        .replace(/\n\n?$/, '')
        .split('\n');
      const [, method, path, body] = /^(\S+) (\S+)(?: (.*))?$/.exec(request) ?? [];
      if (method === 'PUBLISH') return { method, path, body, headers: {}, status: 0, form: 'none', lines: [] };
      const at = rest.findIndex((line) => line.startsWith('< '));
      const headers = rest.slice(0, at).map((line) => /^\+ (\S+): (.*)$/.exec(line)?.slice(1) as [string, string]);
      const [, status, form] = rest[at].split(' ');
      return {
        method,
        path,
        body,
        headers: Object.fromEntries(headers),
        status: Number(status),
        form,
        lines: rest.slice(at + 1)
      };
    });
}

const TYPES: Readonly<Record<string, string | null>> = {
  text: 'text/plain; charset=utf-8',
  error: 'text/plain; charset=utf-8',
  json: 'application/json'
};

function compare(text: string, { lines, form }: Exchange): void {
  const end = form === 'error' || form === 'json' ? '\n' : '';
  if (!lines.some((line) => line.endsWith('...'))) {
    assert.equal(text, lines.join('\n') + end);
    return;
  }
  const found = text.split('\n');
  for (const [at, line] of lines.entries()) {
    if (line.endsWith('...')) assert.ok(found[at].startsWith(line.slice(0, -3)), `${found[at]}\n  is not ${line}`);
    else assert.equal(found[at], line);
  }
}

async function run(file: string, options: StreamsApiOptions): Promise<void> {
  await using kit = await createTestBroker({ leaks: 'ignore' });
  const { broker } = kit;
  await broker.applications.create({ id: 'app', secret: SECRET });
  await using server = await serve(streamsApi(broker, options).node);
  for (const exchange of exchangesIn(file)) {
    const { method, path, body, headers, status, form } = exchange;
    if (method === 'PUBLISH') {
      await broker.publish({ topic: path, payload: body });
      continue;
    }
    // the type of the body is not looked at
    const sent = {
      authorization: AUTHORIZATION,
      'content-type': 'application/x-www-form-urlencoded',
      ...headers
    };
    const answer = await server.call(method, path, body, sent);
    const shown = `${method} ${path} ${body ?? ''}: ${answer.text}`;
    assert.equal(answer.status, status, shown);
    if (form !== 'none') {
      assert.equal(answer.headers.get('content-type'), TYPES[form], shown);
      compare(answer.text, exchange);
    }
    const isProtected = form === 'error';
    assert.equal(answer.headers.get('x-content-type-options'), isProtected ? 'nosniff' : null, shown);
  }
}

describe('The interface of streams over HTTP', () => {
  it('answers streams, tables and rules as documented', async () => {
    await run('answers.txt', {});
  });

  it('answers plugins and functions as documented', async () => {
    await run('plugin-answers.txt', { plugins: new FakePlugins() });
  });
});
