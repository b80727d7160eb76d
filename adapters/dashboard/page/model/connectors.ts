// Webhooks and bridges as forms: the options of the interface as texts of fields, and back.
import { HIDDEN } from './copy.ts';

type Settings = Readonly<Record<string, unknown>>;
type Texts = Readonly<Record<string, string>>;

/** A way to write an option as text. `read` returns undefined for an option that is left out. */
interface Form {
  readonly write: (value: unknown) => string;
  readonly read: (text: string) => unknown;
}

const LIST_LINES = /\r?\n/;
const linesIn = (text: string) => text.split(LIST_LINES).filter((line) => line.trim() !== '');

const TEXT: Form = { write: (value) => `${value}`, read: (text) => (text === '' ? undefined : text) };
const NUMBER: Form = { write: TEXT.write, read: (text) => (text === '' ? undefined : Number(text)) };
const FLAG: Form = { write: TEXT.write, read: (text) => (text === '' ? undefined : text === 'true') };
/** A secret is not shown; an empty field keeps it. */
const SECRET: Form = { write: () => '', read: TEXT.read };
/** Events, each with a topic filter after a blank if only some topics are meant. */
const EVENTS: Form = {
  write: (value) =>
    (value as readonly { readonly event: string; readonly topic?: string }[])
      .map(({ event, topic }) => (topic === undefined ? event : `${event} ${topic}`))
      .join('\n'),
  read: (text) => {
    const rules = linesIn(text).map((line) => {
      const [event, ...rest] = line.trimStart().split(' ');
      return rest.length === 0 ? { event } : { event, topic: rest.join(' ') };
    });
    return rules.length === 0 ? undefined : rules;
  }
};
/** Topic filters, or objects with a topic filter and further options as JSON, a line each. */
const TOPICS: Form = {
  write: (value) =>
    (value as readonly Settings[])
      .map((entry) =>
        Object.keys(entry).join() === 'filter' && !`${entry.filter}`.startsWith('{')
          ? `${entry.filter}`
          : JSON.stringify(entry)
      )
      .join('\n'),
  read: (text) => {
    const entries = linesIn(text).map((line) =>
      line.startsWith('{') ? (JSON.parse(line) as unknown) : { filter: line }
    );
    return entries.length === 0 ? undefined : entries;
  }
};
/** Names with values, a line each: `Authorization: Bearer ...`. */
const HEADERS: Form = {
  write: (value) =>
    typeof value !== 'object' || value === null
      ? ''
      : Object.entries(value)
          .map(([name, text]) => `${name}: ${text}`)
          .join('\n'),
  read: (text) => {
    const entries = linesIn(text).map((line) => {
      const at = line.indexOf(':');
      return at < 0 ? [line.trim(), ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    });
    return entries.length === 0 ? undefined : Object.fromEntries(entries);
  }
};

/** The options that have a field, by kind. Others are in the field `more`, as JSON. */
export const FORMS = {
  webhook: { url: TEXT, rules: EVENTS, encodePayload: TEXT, headers: HEADERS, secret: SECRET, isPersisted: FLAG },
  bridge: {
    url: TEXT,
    username: TEXT,
    password: SECRET,
    out: TOPICS,
    in: TOPICS,
    version: NUMBER,
    isPersisted: FLAG
  }
} as const satisfies Readonly<Record<string, Readonly<Record<string, Form>>>>;

export type ConnectorKind = keyof typeof FORMS;

function formsOf(kind: ConnectorKind): readonly (readonly [string, Form])[] {
  return Object.entries(FORMS[kind] as Readonly<Record<string, Form>>);
}

/** The options of a connector as texts of the fields. Options without a field are JSON in `more`. */
export function textsOf(kind: ConnectorKind, { name, ...settings }: Settings): Texts {
  const texts: Record<string, string> = {};
  const more: Record<string, unknown> = { ...settings };
  for (const [key, form] of formsOf(kind)) {
    if (settings[key] === undefined) continue;
    delete more[key];
    texts[key] = settings[key] === HIDDEN ? '' : form.write(settings[key]);
  }
  return { ...texts, more: Object.keys(more).length === 0 ? '' : JSON.stringify(more, undefined, 2) };
}

/**
 * The options that the fields contain.
 * @param before the present options, of which a secret whose field is empty is kept
 * @throws SyntaxError for text that is not JSON
 */
export function settingsOf(kind: ConnectorKind, texts: Texts, before: Settings = {}): Settings {
  const settings: Record<string, unknown> = { ...objectIn(texts.more ?? '') };
  for (const [key, form] of formsOf(kind)) {
    const value = form.read(texts[key] ?? '');
    const isKept = value === undefined && before[key] === HIDDEN;
    if (value !== undefined) settings[key] = value;
    else if (isKept) settings[key] = HIDDEN;
  }
  return settings;
}

function objectIn(text: string): Settings {
  if (text.trim() === '') return {};
  const value = JSON.parse(text) as unknown;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new SyntaxError('{ ... }');
  return value as Settings;
}
