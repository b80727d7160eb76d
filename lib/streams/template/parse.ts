// The grammar is that of templates of Go. Names of functions and variables are checked while parsing, so the parser
// knows which variables are visible in each block; a definition has none of those around it. Levels are limited,
// because the parser and the compiler recurse.

import { scan, type Token, unquote } from './scan.ts';
import { TemplateError } from './template-error.ts';
import type { Expression, Node, Pipeline, Tree } from './tree.ts';

/** Maximum nesting of blocks and parentheses. */
const MAX_LEVELS = 100;
const KEYWORDS: readonly string[] = [
  ...['block', 'break', 'continue', 'define', 'else', 'end', 'if', 'range', 'template', 'with']
];

/**
 * Parse a template.
 * @param isFunction whether a function of this name exists
 * @throws TemplateError
 */
export function parseTemplate(text: string, isFunction: (name: string) => boolean): Tree {
  return new Parser(scan(text), isFunction).parse();
}

/** The nodes of a block, and the token that ended it. */
interface Block {
  readonly nodes: Node[];
  readonly last: 'end' | 'else';
}

class Parser {
  readonly #tokens: readonly Token[];
  readonly #isFunction: (name: string) => boolean;
  readonly #definitions = new Map<string, readonly Node[]>();
  #at = 0;
  #level = 0;
  /** Number of loops around the current node. */
  #loops = 0;
  /** The visible variables. */
  #variables: string[] = ['$'];

  constructor(tokens: readonly Token[], isFunction: (name: string) => boolean) {
    this.#tokens = tokens;
    this.#isFunction = isFunction;
  }

  parse(): Tree {
    const body: Node[] = [];
    while (this.#next.type !== 'end of template') {
      const node = this.#node();
      if (node === 'end' || node === 'else') throw new TemplateError(`unexpected {{${node}}}`, this.#last.start);
      if (node !== undefined) body.push(node);
    }
    return { body, definitions: this.#definitions };
  }

  get #next(): Token {
    return this.#tokens[this.#at];
  }

  get #last(): Token {
    return this.#tokens[this.#at - 1];
  }

  #take(): Token {
    return this.#tokens[this.#at++];
  }

  /** @returns the end of a block by its keyword; undefined for a definition */
  #node(): Node | 'end' | 'else' | undefined {
    const { type, text, start, end } = this.#take();
    if (type === 'text') return { type: 'text', text, start, end };
    const { type: first, text: word } = this.#next;
    if (first !== 'word' || !KEYWORDS.includes(word)) return this.#print(start);
    this.#at++;
    switch (word) {
      case 'end':
        this.#close();
        return 'end';
      case 'else':
        return 'else'; // the block reads the rest
      case 'if':
      case 'with':
      case 'range':
        return this.#control(word, start);
      case 'define':
      case 'block':
        return this.#define(word, start);
      case 'template':
        return this.#template(start);
      default:
        if (this.#loops === 0) throw new TemplateError(`{{${word}}} outside {{range}}`, start);
        this.#close();
        return { type: word as 'break' | 'continue', start, end: this.#last.end };
    }
  }

  #print(start: number): Node {
    const pipeline = this.#pipeline('command', 'close');
    return { type: 'print', pipeline, start, end: this.#last.end };
  }

  #control(type: 'if' | 'with' | 'range', start: number): Node {
    const visible = this.#variables.length;
    const pipeline = this.#pipeline(type, 'close');
    if (type === 'range') this.#loops++;
    const { nodes: body, last } = this.#block(start);
    if (type === 'range') this.#loops--;
    const otherwise = last === 'else' ? this.#otherwise(type, start) : [];
    this.#variables.length = visible;
    return { type, pipeline, body, otherwise, start, end: this.#last.end };
  }

  /** Parse the part after `else`: `{{else}}`, `{{else if ...}}`, `{{else with ...}}`. */
  #otherwise(type: string, start: number): readonly Node[] {
    const { type: next, text, start: at } = this.#next;
    if (next === 'word' && text === type && type !== 'range') {
      this.#at++;
      return this.#deeper(at, () => [this.#control(type as 'if' | 'with', at)]);
    }
    this.#close();
    const { nodes, last } = this.#block(start);
    if (last === 'else') throw new TemplateError('expected end; found {{else}}', this.#last.start);
    return nodes;
  }

  #block(start: number): Block {
    return this.#deeper(start, () => {
      const nodes: Node[] = [];
      const visible = this.#variables.length;
      for (;;) {
        if (this.#next.type === 'end of template')
          throw new TemplateError('unexpected EOF: {{end}} is missing', this.#next.start);
        const node = this.#node();
        if (node === 'end' || node === 'else') {
          this.#variables.length = visible;
          return { nodes, last: node };
        }
        if (node !== undefined) nodes.push(node);
      }
    });
  }

  #define(word: 'define' | 'block', start: number): Node | undefined {
    const name = this.#name(word);
    const pipeline = word === 'block' ? this.#pipeline('block clause', 'close') : this.#close();
    const outer = { variables: this.#variables, loops: this.#loops };
    this.#variables = ['$'];
    this.#loops = 0;
    const { nodes, last } = this.#block(start);
    if (last === 'else') throw new TemplateError(`unexpected {{else}} in ${word} clause`, this.#last.start);
    this.#variables = outer.variables;
    this.#loops = outer.loops;
    this.#definitions.set(name, nodes);
    return word === 'block' ? { type: 'template', name, pipeline, start, end: this.#last.end } : undefined;
  }

  #template(start: number): Node {
    const name = this.#name('template clause');
    const hasData = this.#next.type !== 'close';
    const pipeline = hasData ? this.#pipeline('template clause', 'close') : this.#close();
    return { type: 'template', name, pipeline, start, end: this.#last.end };
  }

  #name(where: string): string {
    const token = this.#take();
    if (token.type !== 'string') throw unexpected(token, where);
    return token.text;
  }

  #close(): undefined {
    const token = this.#take();
    if (token.type !== 'close') throw unexpected(token, 'end of action');
  }

  /** @param end `close`, or `symbol` for the closing parenthesis */
  #pipeline(where: string, end: 'close' | 'symbol'): Pipeline {
    const { start } = this.#next;
    const { variables, isAssignment } = this.#declaration(where);
    const commands: Expression[] = [];
    for (;;) {
      const token = this.#next;
      const isEnd = token.type === end && (end === 'close' || token.text === ')');
      if (isEnd || token.type === 'close') {
        if (!isEnd) throw new TemplateError('unclosed left paren', start);
        if (commands.length === 0) throw new TemplateError(`missing value for ${where}`, token.start);
        this.#at++;
        break;
      }
      const command = this.#command(where);
      const isValue = command.type !== 'call';
      if (isValue && commands.length > 0)
        throw new TemplateError(`non executable command in pipeline stage ${commands.length + 1}`, command.start);
      commands.push(command);
    }
    if (!isAssignment) this.#variables.push(...variables);
    return { variables, isAssignment, commands, start, end: this.#last.start };
  }

  /** Parse `$x :=`, `$x =`, and in loops `$index, $element :=`. */
  #declaration(where: string): Pick<Pipeline, 'variables' | 'isAssignment'> {
    const isSymbol = (at: number, ...texts: string[]) => {
      const { type, text } = this.#tokens[this.#at + at];
      return type === 'symbol' && texts.includes(text);
    };
    if (this.#next.type !== 'variable') return NO_DECLARATION;
    const first = this.#next;
    const variables = [first.text];
    if (isSymbol(1, ',')) {
      const second = this.#tokens[this.#at + 2];
      if (where !== 'range' || second.type !== 'variable')
        throw new TemplateError(`too many declarations in ${where}`, first.start);
      variables.push(second.text);
    }
    const length = 2 * variables.length;
    if (!isSymbol(length - 1, ':=', '=')) {
      if (variables.length === 1) return NO_DECLARATION;
      throw unexpected(this.#tokens[this.#at + length - 1], where);
    }
    const isAssignment = isSymbol(length - 1, '=');
    this.#at += length;
    if (isAssignment) for (const name of variables) this.#check(name, first.start);
    return { variables, isAssignment };
  }

  /** Parse a value, or a function with its arguments, up to `|` or the end of the pipeline. */
  #command(where: string): Expression {
    const words: Expression[] = [];
    const isFunction = this.#next.type === 'word' && !isConstant(this.#next.text);
    const { start } = this.#next;
    for (;;) {
      const token = this.#next;
      if (token.type === 'close' || (token.type === 'symbol' && token.text === ')')) break;
      if (token.type === 'symbol' && token.text === '|') {
        if (words.length === 0) throw unexpected(token, where);
        this.#at++;
        if (this.#next.type === 'close') throw new TemplateError(`missing value for ${where}`, this.#next.start);
        break;
      }
      if (words.length > 0 && !token.isSpaced && token.type !== 'symbol') throw unexpected(token, 'operand');
      words.push(this.#operand(where));
    }
    const [first, ...args] = words;
    if (first === undefined) throw unexpected(this.#next, where);
    if (isFunction && first.type === 'call') return { ...first, args, start, end: words[words.length - 1].end };
    if (first.type === 'literal' && first.value === null) throw new TemplateError('nil is not a command', start);
    if (args.length === 0) return first;
    throw new TemplateError(
      first.type === 'fields'
        ? `${first.names[first.names.length - 1]} is not a method but has arguments`
        : "can't give argument to non-function",
      start
    );
  }

  /** Parse a term and its fields. */
  #operand(where: string): Expression {
    const of = this.#term(where);
    const names: string[] = [];
    while (this.#next.type === 'field' && !this.#next.isSpaced) names.push(this.#take().text);
    if (names.length === 0) return of;
    if (of.type === 'literal' || of.type === 'dot')
      throw new TemplateError(`unexpected . after term ${JSON.stringify(where)}`, of.start);
    const { end } = this.#last;
    if (of.type === 'fields') return { ...of, names: [...of.names, ...names], end };
    return { type: 'fields', of, names, start: of.start, end };
  }

  #term(where: string): Expression {
    const token = this.#take();
    const { type, text, start, end } = token;
    switch (type) {
      case 'dot':
        return { type: 'dot', start, end };
      case 'field':
        return { type: 'fields', of: { type: 'dot', start, end: start }, names: [text], start, end };
      case 'variable':
        this.#check(text, start);
        return { type: 'variable', name: text, start, end };
      case 'string':
        return { type: 'literal', value: text, start, end };
      case 'number':
        return { type: 'literal', value: numberOf(text, start), start, end };
      case 'word':
        if (isConstant(text)) return { type: 'literal', value: CONSTANTS[text], start, end };
        if (!this.#isFunction(text)) throw new TemplateError(`function ${JSON.stringify(text)} not defined`, start);
        return { type: 'call', name: text, args: [], start, end };
      default:
        if (type !== 'symbol' || text !== '(') throw unexpected(token, where === 'command' ? 'operand' : where);
        return this.#deeper(start, () => {
          const pipeline = this.#pipeline('parenthesized pipeline', 'symbol');
          return { type: 'pipeline', pipeline, start, end: this.#last.end };
        });
    }
  }

  #check(variable: string, start: number): void {
    if (!this.#variables.includes(variable))
      throw new TemplateError(`undefined variable ${JSON.stringify(variable)}`, start);
  }

  #deeper<T>(start: number, run: () => T): T {
    if (++this.#level > MAX_LEVELS) throw new TemplateError(`more than ${MAX_LEVELS} levels`, start);
    const result = run();
    this.#level--;
    return result;
  }
}

const NO_DECLARATION = { variables: [], isAssignment: false } as const;
const CONSTANTS: Readonly<Record<string, boolean | null>> = { true: true, false: false, nil: null };

function isConstant(word: string): boolean {
  return Object.hasOwn(CONSTANTS, word);
}

function unexpected({ type, text, start }: Token, where: string): TemplateError {
  return new TemplateError(`unexpected ${type === 'close' ? '"}}"' : JSON.stringify(text)} in ${where}`, start);
}

/** The value of a number: integers are bigint, and characters are their code points. @throws TemplateError */
function numberOf(text: string, start: number): number | bigint {
  if (text.startsWith("'")) {
    const characters = [...unquote(text, start)];
    if (characters.length !== 1) throw new TemplateError(`malformed character constant: ${text}`, start);
    return BigInt(characters[0].codePointAt(0) as number);
  }
  const plain = text.replaceAll('_', '');
  const [, sign, digits] = /^([+-]?)(.*)$/.exec(plain) as unknown as [string, string, string];
  const isInteger = /^(0[xX][\da-fA-F]+|0[oO][0-7]+|0[bB][01]+|0[0-7]*|[1-9]\d*)$/.test(digits);
  if (isInteger) {
    const value = BigInt(/^0\d/.test(digits) ? `0o${digits.replace(/^0+(?=.)/, '')}` : digits);
    return sign === '-' ? -value : value;
  }
  const value = /^(?=.*[.eE])\d*(?:\.\d*)?([eE][+-]?\d+)?$/.test(digits) ? Number(plain) : Number.NaN;
  if (Number.isNaN(value)) throw new TemplateError(`bad number syntax: ${JSON.stringify(text)}`, start);
  return value;
}
