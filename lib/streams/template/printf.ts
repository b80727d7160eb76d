import { BoundedText, joined, printInner } from './print.ts';
import { isList, isObject, type TemplateValue, typeOf } from './template-value.ts';

/** `%`, flags, width, precision and verb. */
const DIRECTIVE = /%([-+# 0]*)(\d+)?(?:\.(\d+)?)?([\s\S])?/gu;

interface Directive {
  readonly flags: string;
  readonly width: number;
  readonly precision: number | undefined;
}

/** Format values as `printf` does. @param most maximum number of characters @throws StreamFailure if there are more */
export function formatted(format: string, values: readonly TemplateValue[], most: number): string {
  const out = new BoundedText(most);
  let used = 0;
  let end = 0;
  for (const part of format.matchAll(DIRECTIVE)) {
    out.add(format.slice(end, part.index));
    end = part.index + part[0].length;
    const [whole, flags, width = '0', digits, verb] = part;
    if (verb === '%') out.add('%');
    else if (verb === undefined) out.add('%!(NOVERB)');
    else if (used >= values.length) out.add(`%!${verb}(MISSING)`);
    else {
      const precision = whole.includes('.') ? Number(digits ?? 0) : undefined;
      const directive = { flags, width: Math.min(Number(width), most), precision };
      const value = values[used++];
      out.add(padded(textOf(value, verb, directive, most), directive, typeof value !== 'string'));
    }
  }
  out.add(format.slice(end));
  if (used < values.length) {
    const shown = (value: TemplateValue) => `${typeName(value)}=${printInner(value, most)}`;
    out.add(`%!(EXTRA ${joined(values.slice(used), ', ', shown, most)})`);
  }
  return out.text;
}

function padded(text: string, { flags, width }: Directive, isNumber: boolean): string {
  const missing = width - [...text].length;
  if (missing <= 0) return text;
  if (flags.includes('-')) return text + ' '.repeat(missing);
  if (!flags.includes('0') || !isNumber) return ' '.repeat(missing) + text;
  const sign = /^[+-]/.test(text) ? 1 : 0;
  return text.slice(0, sign) + '0'.repeat(missing) + text.slice(sign);
}

function typeName(value: TemplateValue): string {
  return value === null || value === undefined ? '<nil>' : typeOf(value);
}

function textOf(value: TemplateValue, verb: string, directive: Directive, most: number): string {
  if (verb === 'v' && (typeof value !== 'number' || directive.precision === undefined))
    return signed(printInner(value, most), value, directive);
  if (verb === 'T') return typeName(value);
  const text = byType(value, verb, directive);
  if (text !== undefined) return text;
  if (isList(value)) return `[${joined(value, ' ', (each) => textOf(each, verb, directive, most), most)}]`;
  if (isObject(value) && verb === 's') return printInner(value, most);
  return value === null || value === undefined
    ? `%!${verb}(<nil>)`
    : `%!${verb}(${typeOf(value)}=${printInner(value, most)})`;
}

function byType(value: TemplateValue, verb: string, directive: Directive): string | undefined {
  switch (typeof value) {
    case 'string':
      return stringText(value, verb, directive);
    case 'boolean':
      return verb === 't' ? String(value) : undefined;
    case 'bigint':
      return integerText(value, verb, directive);
    case 'number':
      return floatText(value, verb, directive);
    default:
      return undefined;
  }
}

function stringText(text: string, verb: string, { precision, flags }: Directive): string | undefined {
  const cut = precision === undefined ? text : [...text].slice(0, precision).join('');
  switch (verb) {
    case 's':
      return cut;
    case 'q':
      return flags.includes('#') && !cut.includes('`') ? `\`${cut}\`` : quoted(cut);
    case 'x':
      return Buffer.from(cut).toString('hex');
    case 'X':
      return Buffer.from(cut).toString('hex').toUpperCase();
    default:
      return undefined;
  }
}

const BASES: Readonly<Record<string, number>> = { d: 10, b: 2, o: 8, x: 16, X: 16 };

function integerText(value: bigint, verb: string, directive: Directive): string | undefined {
  if (verb === 'c' || verb === 'q' || verb === 'U') {
    const isValid = value >= 0n && value <= 0x10ffffn;
    const character = isValid ? String.fromCodePoint(Number(value)) : '\uFFFD';
    if (verb === 'U') return `U+${value.toString(16).toUpperCase().padStart(4, '0')}`;
    return verb === 'c' ? character : `'${character}'`;
  }
  const base = BASES[verb];
  if (base === undefined) return undefined;
  const digits = value.toString(base);
  return signed(verb === 'X' ? digits.toUpperCase() : digits, value, directive);
}

function floatText(value: number, verb: string, directive: Directive): string | undefined {
  const { precision } = directive;
  if (!'feEgGvF'.includes(verb)) return undefined;
  if (!Number.isFinite(value)) return signed(printInner(value, 10), value, directive);
  let text: string;
  if (verb === 'f' || verb === 'F') text = fixed(value, Math.min(precision ?? 6, 100));
  else if (verb === 'e' || verb === 'E') text = exponent(value.toExponential(Math.min(precision ?? 6, 100)));
  else if (precision === undefined) text = printInner(value, 100);
  else text = general(value, Math.min(precision || 1, 100));
  return signed(verb === 'E' || verb === 'G' ? text.toUpperCase() : text, value, directive);
}

/** As `toFixed`, which switches to exponents from 1e21 on. */
function fixed(value: number, digits: number): string {
  if (Math.abs(value) < 1e21) return value.toFixed(digits);
  return `${BigInt(value)}${digits === 0 ? '' : `.${'0'.repeat(digits)}`}`;
}

function general(value: number, digits: number): string {
  if (value === 0) return '0';
  const [mantissa, power] = value.toExponential(digits - 1).split('e');
  const size = Number(power);
  const text = size < -4 || size >= digits ? mantissa : fixed(value, Math.max(0, digits - 1 - size));
  const short = text.includes('.') ? text.replace(/\.?0+$/, '') : text;
  return size < -4 || size >= digits ? exponent(`${short}e${power}`) : short;
}

/** Pad an exponent to at least two digits. */
function exponent(text: string): string {
  return text.replace(/e([+-])(\d)$/, 'e$10$2');
}

function signed(text: string, value: TemplateValue, { flags }: Directive): string {
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  if (!isNumber || text.startsWith('-') || text.startsWith('+')) return text;
  return flags.includes('+') ? `+${text}` : flags.includes(' ') ? ` ${text}` : text;
}

/** Quote a string with double quotes and the escapes of Go. */
export function quoted(text: string): string {
  const escaped = text.replace(/["\\\p{Cc}]/gu, (character) => {
    const short = SHORT[character];
    return short ?? `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
  return `"${escaped}"`;
}

const SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v'
};
