/** One value in the form of the text. */
interface ParsedSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric in the form of the text. */
interface ParsedFamily {
  readonly name: string;
  help?: string;
  type?: string;
  unit?: string;
  readonly samples: ParsedSample[];
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\.)*)"(,|$)/;
const VALUE = /^([+-]?Inf|NaN|[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)$/;

/**
 * Parse metrics strictly, by the documents of the text format 0.0.4 and of OpenMetrics 1.0. It was written from these documents, not from
 * the code under test.
 * @throws Error that names the line
 */
export function parseExposition(text: string, format: 'text' | 'openmetrics'): Map<string, ParsedFamily> {
  const isOpen = format === 'openmetrics';
  const families = new Map<string, ParsedFamily>();
  const series = new Set<string>();
  let current: ParsedFamily | undefined;
  if (!text.endsWith('\n')) throw new Error('the last line has no line feed');
  if (text.includes('\r')) throw new Error('lines end with a line feed alone');
  const lines = text.slice(0, -1).split('\n');
  if (isOpen && lines.pop() !== '# EOF') throw new Error('there is no # EOF at the end');
  for (const line of lines) {
    const fail = (why: string): never => {
      throw new Error(`${why}: ${line}`);
    };
    const [, keyword, name, rest] = new RegExp(`^# (HELP|TYPE|UNIT) (${NAME}) (.*)$`).exec(line) ?? [];
    if (keyword !== undefined) {
      if (current?.name !== name) {
        if (families.has(name)) fail('the lines of a metric do not stand together');
        current = { name, samples: [] };
        families.set(name, current);
      }
      if (current.samples.length > 0) fail('it stands behind samples');
      describe(current, keyword as 'HELP', rest, { isOpen, fail });
      continue;
    }
    if (line.startsWith('#')) fail('neither HELP nor TYPE');
    const sample = readSample(line, fail);
    if (current === undefined || current.type === undefined) throw fail('a sample without a type');
    const expected = isOpen && current.type === 'counter' ? `${current.name}_total` : current.name;
    const isSeries =
      current.type === 'histogram'
        ? /^_(bucket|sum|count)$/.test(sample.name.slice(expected.length))
        : sample.name === expected;
    if (!isSeries || !sample.name.startsWith(expected)) fail(`a sample of ${expected} is expected`);
    if (sample.name === `${expected}_bucket` && sample.labels.le === undefined) fail('a bucket without a bound');
    if (current.type === 'counter' && !(sample.value >= 0)) fail('a counter is not negative');
    const key = `${sample.name}${JSON.stringify(Object.entries(sample.labels).sort())}`;
    if (series.has(key)) fail('the same series twice');
    series.add(key);
    current.samples.push(sample);
  }
  return families;
}

function describe(
  family: ParsedFamily,
  keyword: 'HELP' | 'TYPE' | 'UNIT',
  rest: string,
  { isOpen, fail }: { readonly isOpen: boolean; readonly fail: (why: string) => never }
): void {
  const field = keyword.toLowerCase() as 'help' | 'type' | 'unit';
  if (family[field] !== undefined) fail(`a second ${keyword}`);
  if (
    keyword === 'TYPE' &&
    !['counter', 'gauge', 'histogram', 'summary', isOpen ? 'unknown' : 'untyped'].includes(rest)
  )
    fail('an unknown type');
  if (keyword === 'UNIT' && !(isOpen && family.name.endsWith(`_${rest}`))) fail('the name does not end with the unit');
  if (keyword === 'HELP' && /\\[^n"]/.test(rest.replaceAll('\\\\', ''))) fail('an unknown escape');
  family[field] = keyword === 'HELP' ? unescaped(rest) : rest;
}

function readSample(line: string, fail: (why: string) => never): ParsedSample {
  const [, name, , inside = '', value] = new RegExp(`^(${NAME})(\\{(.*)\\})? (\\S+)$`).exec(line) ?? fail('no sample');
  if (!VALUE.test(value)) fail('no value');
  const labels: Record<string, string> = {};
  let left = inside;
  while (left !== '') {
    const [whole, label, text] = LABEL.exec(left) ?? fail('no label');
    if (label in labels) fail('a label twice');
    if (/\\[^n"]/.test(text.replaceAll('\\\\', ''))) fail('an unknown escape');
    labels[label] = unescaped(text);
    left = left.slice(whole.length);
  }
  return { name, labels, value: Number(value.replace('Inf', 'Infinity')) };
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character));
}
