import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import ts from 'typescript';

/** The code whose errors are shown by REST, the command and the log. */
const FOLDERS = [
  'lib/access',
  'lib/broker',
  'lib/monitor',
  'lib/outbox',
  'lib/retained',
  'lib/routing',
  'lib/rules',
  'lib/session',
  'lib/streams',
  'adapters/management',
  'adapters/rest',
  'adapters/streams-api',
  'adapters/streams-plugins',
  'adapters/webhook',
  'adapters/bridge'
];

/** Names of the library that only the author of an app knows. */
const OF_LIBRARY =
  /\bbroker\.(?!example|sys_|shared_)[a-z]\w*|\bcreateBroker\b|\bcall (await )?[a-z]\w*(\.\w+)*\(|\b(change|replace) it with [a-z]\w*|\bsetSecret\b/;

/** Messages that are not visible over REST, with the reason. This list may only shrink. */
const KNOWN: Readonly<Record<string, string>> = {
  'a broker, which createBroker returns, as the first argument': 'an argument of the app',
  'Number of past alarms that `broker.alarms` keeps. The oldest ones are deleted.': 'describes an option',
  'Rows that the app pushes with broker.streams.push().': 'describes a source of the app',
  'embermq serve --app ID:SECRET, or broker.applications.create() in an app':
    'a report to the operator, with both remedies',
  'broker.users.create() in an app': 'likewise',
  'broker.start() or broker.stop()': 'an error of send() and stop() of an actor, which only apps have',
  'kick or discard of broker.sessions.get("…")': 'likewise',
  'start, stop or delete of broker.streams.rules': 'likewise',
  'update or delete of broker.rules': 'likewise'
};

/** Such a name behind a quotation mark. */
const IN_QUOTES = new RegExp(`['"\`].*(?:${OF_LIBRARY.source.replaceAll('\\b', '')})`);

/** Tell whether a literal of a source may contain such a name: in its line, or as a part of a literal of several lines. */
function mayName(source: string): boolean {
  return source.split('\n').some((line) => line.split('`').length % 2 === 0 || IN_QUOTES.test(line));
}

/** The string literals of a file that have more than one word. */
function textsIn(file: string): string[] {
  const source = readFileSync(file, 'utf8');
  if (!mayName(source)) return [];
  const texts: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node)) texts.push(node.text);
    else if (ts.isTemplateExpression(node))
      texts.push([node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)].join('…'));
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, source, ts.ScriptTarget.Latest));
  return texts.filter((text) => text.includes(' '));
}

describe('Error messages', () => {
  it('names no methods of the library, which callers of REST and users of the command do not have', () => {
    const found = new Set<string>();
    for (const folder of FOLDERS)
      for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
        if (!name.endsWith('.ts') || /^client\//.test(name)) continue;
        for (const text of textsIn(`${folder}/${name}`)) if (OF_LIBRARY.test(text)) found.add(text);
      }
    assert.deepEqual([...found].sort(), Object.keys(KNOWN).sort());
  });
});
