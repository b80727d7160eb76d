// The commands of `embermq ctl` that pages copy: read from the sources of the page, and run.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, it } from 'node:test';
import ts from 'typescript';
import { runCommand } from '../../adapters/cli/commands.ts';
import { testShell } from '../cli/shell.ts';
import { PAGE, textOf } from '../support/sources.ts';

const root = join(import.meta.dirname, '../..');
const files = readdirSync(join(root, PAGE), { recursive: true, encoding: 'utf8' })
  .map((name) => posix.join(PAGE, name.replaceAll('\\', '/')))
  .filter((name) => name.endsWith('.tsx'));

/** The values of variables that choose an action, where the source does not show them. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  'pages/connectors/detail.tsx kind': ['webhook', 'bridge'],
  'pages/connectors/form.tsx kind': ['webhook', 'bridge'],
  'pages/connectors/switch.tsx kind': ['webhook', 'bridge'],
  'pages/connectors/connectors.tsx kind': ['webhook', 'bridge'],
  'pages/definition.tsx kind': ['stream', 'table'],
  'pages/stream.tsx name': ['start', 'stop', 'restart'],
  'pages/rules.tsx tab': ['rules', 'resources'],
  'pages/features.tsx verb': ['load', 'unload', 'reload'],
  'pages/options.tsx source': ['option'],
  'pages/access/rules.tsx access': ['allow', 'deny'],
  'pages/access/rules.tsx action': ['pub', 'sub', 'pubsub'],
  'pages/access/lift.tsx as': ['clientid'],
  'pages/streams/plugins.tsx type': ['functions']
};
/** The word in place of a name, a number or a text that a person gives. */
const GIVEN = '1';
/** The standard input of the commands that read a rule. */
const INPUT = '{"rawsql":"SELECT * FROM \\"a\\"","sql":"SELECT * FROM a","actions":[]}';

/** The lists of words in a source: each is a command without `embermq ctl`. */
class Commands {
  readonly #name: string;
  readonly #declared = new Map<string, ts.Expression>();
  /** The expressions of the attributes and properties `ctl`. */
  readonly #found: ts.Expression[] = [];

  constructor(file: string) {
    this.#name = file.slice(PAGE.length);
    const visit = (node: ts.Node): void => {
      this.#take(node);
      ts.forEachChild(node, visit);
    };
    visit(ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX));
  }

  /** All commands, with each value of each choice. */
  get lists(): string[][] {
    return this.#found.flatMap((node) => this.#listsOf(node) ?? []);
  }

  #take(node: ts.Node): void {
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer)
      this.#declared.set(node.name.text, node.initializer);
    if (ts.isFunctionDeclaration(node) && node.name && node.body)
      for (const statement of node.body.statements)
        if (ts.isReturnStatement(statement) && statement.expression)
          this.#declared.set(`${node.name.text}()`, statement.expression);
    if (
      ts.isJsxAttribute(node) &&
      node.name.getText() === 'ctl' &&
      node.initializer &&
      ts.isJsxExpression(node.initializer)
    )
      this.#found.push(...(node.initializer.expression ? [node.initializer.expression] : []));
    if (ts.isPropertyAssignment(node) && node.name.getText() === 'ctl') this.#found.push(node.initializer);
    if (ts.isShorthandPropertyAssignment(node) && node.name.text === 'ctl') this.#found.push(node.name);
  }

  /** The lists that an expression may have. @returns undefined if the source does not show them */
  #listsOf(node: ts.Expression): string[][] | undefined {
    if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) return this.#listsOf(node.expression);
    if (ts.isConditionalExpression(node)) {
      const parts = [this.#listsOf(node.whenTrue), this.#listsOf(node.whenFalse)];
      return parts.flatMap((lists) => lists ?? []);
    }
    const name = ts.isCallExpression(node) ? `${node.expression.getText()}()` : node.getText();
    const declared = this.#declared.get(name);
    if (declared !== undefined) return this.#listsOf(declared);
    if (!ts.isArrayLiteralExpression(node)) return undefined;
    let lists: string[][] = [[]];
    for (const element of node.elements) {
      const parts = ts.isSpreadElement(element)
        ? (this.#listsOf(element.expression) ?? [[]])
        : this.#textsOf(element).map((text) => [text]);
      lists = lists.flatMap((list) => parts.map((part) => [...list, ...part]));
    }
    return lists;
  }

  #textsOf(node: ts.Expression): readonly string[] {
    if (ts.isStringLiteralLike(node)) return [node.text];
    if (ts.isConditionalExpression(node)) return [...this.#textsOf(node.whenTrue), ...this.#textsOf(node.whenFalse)];
    if (ts.isTemplateExpression(node))
      return node.templateSpans.reduce<readonly string[]>(
        (texts, { expression, literal }) =>
          texts.flatMap((text) => this.#textsOf(expression).map((part) => text + part + literal.text)),
        [node.head.text]
      );
    const known = VALUES[`${this.#name} ${node.getText()}`];
    const declared = this.#declared.get(node.getText());
    if (known !== undefined) return known;
    return declared !== undefined && ts.isConditionalExpression(declared) ? this.#textsOf(declared) : [GIVEN];
  }
}

describe('The commands of ctl that pages copy', () => {
  it('runs each copied command with the arguments and flags that its action takes', async () => {
    const commands = files.flatMap((file) => new Commands(file).lists.map((words) => ({ file, words })));
    assert.ok(commands.length > 70, `${commands.length} commands`);
    const wrong: string[] = [];
    for (const { file, words } of commands) {
      const shell = testShell();
      shell.stdin.end(INPUT);
      const flags = ['--url', 'http://127.0.0.1:1/', '--rules-url', 'http://127.0.0.1:1/', '--app', 'id:secret'];
      const code = await runCommand(['ctl', ...flags, ...words], shell);
      const errors = shell.err();
      if (code !== 1 || !/cannot be reached|ECONNREFUSED/.test(errors))
        wrong.push(`${code} ${file}: ${words.join(' ')}: ${errors}`);
    }
    assert.deepEqual(wrong, []);
  });
});
