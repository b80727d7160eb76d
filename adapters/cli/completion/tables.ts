import type { Completed } from '../command.ts';
import { type FlagField, type FlagTable, spellingsOf } from '../flags.ts';

/** Words that need no quotes in a shell. */
const PLAIN = /^[\w.:-]+$/;

/**
 * Two functions of a shell that set REPLY: the words that may follow a place (the words of the command line so far, without flags), and its
 * flags. `@file` and `@folder` stand for names of files, `@` for any value.
 */
export function shellTables(root: Completed): string {
  const words: string[] = [];
  const flags: string[] = [];
  const visit = (place: string, { words: next = {}, flags: table = {}, files }: Completed): void => {
    const names = Object.keys(next).filter((name) => PLAIN.test(name));
    const shown = [...names, ...(files === undefined ? [] : [`@${files}`])];
    if (shown.length > 0) words.push(row(place, shown));
    if (Object.keys(table).length > 0) flags.push(row(place, flagsOf(table)));
    for (const name of names) visit(place === '' ? name : `${place} ${name}`, next[name]);
  };
  visit('', root);
  return `${choice('_embermq_words', words)}${choice('_embermq_flags', flags)}`;
}

function choice(name: string, rows: readonly string[]): string {
  return `${name}() {\n  case $1 in\n${rows.join('')}    *) REPLY='' ;;\n  esac\n}\n`;
}

function row(place: string, shown: readonly string[]): string {
  return `    '${place}') REPLY='${shown.join(' ')}' ;;\n`;
}

/** The spellings of flags; `=` and the kind of the value follow those that take one. */
function flagsOf(table: FlagTable): string[] {
  return Object.entries(table).flatMap(([name, field]) => {
    const kind = kindOf(field);
    const spellings = [...spellingsOf(name, field), ...(field.short === undefined ? [] : [`-${field.short}`])];
    return spellings.map((spelling) => (kind === undefined ? spelling : `${spelling}=${kind}`));
  });
}

/** The kind of the values of a flag; undefined: it needs none. */
function kindOf({ type, suggested, choices, value = '' }: FlagField): string | undefined {
  if (type === 'boolean') return undefined;
  const given = suggested ?? choices ?? (value.includes('|') ? value.split('|') : []);
  const plain = given.map(String).filter((one) => PLAIN.test(one));
  if (plain.length > 0) return plain.join('|');
  return { FILE: '@file', DIR: '@folder' }[value] ?? '@';
}
