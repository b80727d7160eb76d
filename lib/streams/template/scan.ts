import { decodeEscapes } from '../../sql/escapes.ts';
import { TemplateError } from './template-error.ts';

/** The tokens of a template. */
export interface Token {
  readonly type:
    | 'text'
    | 'open'
    | 'close'
    | 'word'
    | 'field'
    | 'variable'
    | 'dot'
    | 'number'
    | 'string'
    | 'symbol'
    | 'end of template';
  /** For a field, its name without the dot; for text and strings, the decoded content; otherwise as written. */
  readonly text: string;
  readonly start: number;
  readonly end: number;
  /** True if white space precedes it. */
  readonly isSpaced: boolean;
}

const OPEN = '{{';
const COMMENT = /\s*\/\*[\s\S]*?\*\/\s*(-?)\}\}/y;
/** A number, whose form is checked later. */
const NUMBER = /[+-]?\.?\d(?:[\w.]|(?<=[eEpP])[+-])*/y;
const NAME = /[\p{L}_][\p{L}\p{Nd}_]*/uy;
/** Quoted tokens, by their first character. */
const QUOTED: Readonly<Record<string, QuotedForm>> = {
  '"': { type: 'string', name: 'quoted string', pattern: /"(?:[^"\\\n]|\\[^\n])*"/y, read: unquote },
  '`': {
    type: 'string',
    name: 'raw quoted string',
    pattern: /`[^`]*`/y,
    read: (quoted) => quoted.slice(1, -1).replaceAll('\r', '')
  },
  "'": {
    type: 'number',
    name: 'character constant',
    pattern: /'(?:[^'\\\n]|\\[^\n])+'/y,
    read: (quoted) => quoted
  }
};

interface QuotedForm {
  readonly type: 'string' | 'number';
  readonly name: string;
  readonly pattern: RegExp;
  readonly read: (quoted: string, start: number) => string;
}
const SYMBOLS = [':=', '(', ')', '|', '=', ','];

/** Split a template into tokens. @throws TemplateError */
export function scan(text: string): Token[] {
  return new Scanner(text).scan();
}

class Scanner {
  readonly #text: string;
  readonly #tokens: Token[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  scan(): Token[] {
    const text = this.#text;
    let isTrimmed = false; // the preceding action ended with a trim marker
    for (;;) {
      const open = text.indexOf(OPEN, this.#at);
      const end = open === -1 ? text.length : open;
      const trims = open !== -1 && /^-\s/.test(text.slice(open + 2, open + 4));
      let part = text.slice(this.#at, end);
      if (isTrimmed) part = part.trimStart();
      if (trims) part = part.trimEnd();
      if (part !== '') this.#add('text', part, this.#at, end, false);
      this.#at = end;
      if (open === -1) break;
      isTrimmed = this.#action(open, trims ? open + 3 : open + 2);
    }
    this.#add('end of template', '', text.length, text.length, false);
    return this.#tokens;
  }

  /** @param inside position of its content after the marker @returns whether it ends with a trim marker */
  #action(start: number, inside: number): boolean {
    const comment = match(COMMENT, this.#text, inside);
    if (comment !== undefined) {
      this.#at = inside + comment.length;
      return comment.endsWith('-}}');
    }
    this.#add('open', OPEN, start, inside, false);
    this.#at = inside;
    for (;;) {
      const from = this.#at;
      const space = /\s*/y;
      space.lastIndex = from;
      this.#at += space.exec(this.#text)![0].length;
      const isSpaced = this.#at > from || from === inside;
      if (this.#at >= this.#text.length) throw new TemplateError('unclosed action', start);
      const trims = isSpaced && this.#text.startsWith('-}}', this.#at);
      if (trims || this.#text.startsWith('}}', this.#at)) {
        this.#add('close', '}}', this.#at, this.#at + (trims ? 3 : 2), isSpaced);
        this.#at += trims ? 3 : 2;
        return trims;
      }
      this.#token(isSpaced);
    }
  }

  #token(isSpaced: boolean): void {
    const start = this.#at;
    const [type, value, length] = this.#read(start);
    this.#at = start + length;
    this.#add(type, value, start, this.#at, isSpaced);
  }

  #read(start: number): readonly [type: Token['type'], text: string, length: number] {
    const text = this.#text;
    const number = match(NUMBER, text, start);
    if (number !== undefined) return ['number', number, number.length];
    const character = text[start];
    if (character === '.' || character === '$') {
      const name = match(NAME, text, start + 1) ?? '';
      if (character === '$') return ['variable', `$${name}`, 1 + name.length];
      return name === '' ? ['dot', '.', 1] : ['field', name, 1 + name.length];
    }
    const word = match(NAME, text, start);
    if (word !== undefined) return ['word', word, word.length];
    const form = QUOTED[character];
    if (form !== undefined) {
      const quoted = match(form.pattern, text, start);
      if (quoted === undefined) throw new TemplateError(`unterminated ${form.name}`, start);
      return [form.type, form.read(quoted, start), quoted.length];
    }
    const symbol = SYMBOLS.find((each) => text.startsWith(each, start));
    if (symbol === undefined) throw new TemplateError(`unexpected ${JSON.stringify(character)} in command`, start);
    return ['symbol', symbol, symbol.length];
  }

  #add(type: Token['type'], text: string, start: number, end: number, isSpaced: boolean): void {
    this.#tokens.push({ type, text, start, end, isSpaced });
  }
}

function match(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

/** Decode a quoted string or character of Go. @throws TemplateError */
export function unquote(quoted: string, start: number): string {
  return decodeEscapes(quoted.slice(1, -1), () => new TemplateError('invalid syntax in a quoted string', start));
}
