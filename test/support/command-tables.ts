import { BENCH_FLAGS } from '../../adapters/cli/bench.ts';
import { flagOf } from '../../adapters/cli/ctl/action.ts';
import { ACTION_GROUPS } from '../../adapters/cli/ctl/actions.ts';
import { CONNECTION_FLAGS } from '../../adapters/cli/ctl/ctl.ts';
import { DECODE_FLAGS } from '../../adapters/cli/decode.ts';
import { DIAL_FLAGS } from '../../adapters/cli/dial.ts';
import { CHECKS } from '../../adapters/cli/doctor/doctor.ts';
import { type FlagTable, spelledAsFlag, spellingsOf } from '../../adapters/cli/flags.ts';
import { IMPORT_FLAGS } from '../../adapters/cli/import/import.ts';
import { MESSAGE_FIELDS, MESSAGE_PROPERTIES } from '../../adapters/cli/json-messages.ts';
import { PUB_FLAGS } from '../../adapters/cli/pub.ts';
import { RECORD_OWN_FLAGS } from '../../adapters/cli/record.ts';
import { CONFIG_FLAG, SERVE_OPTIONS } from '../../adapters/cli/serve/options.ts';
import { STORE_FLAGS } from '../../adapters/cli/store.ts';
import { SUB_FLAGS } from '../../adapters/cli/sub.ts';
import { code, markdown } from './table-parts.ts';

/** The tables of the page about the command. */
export const COMMAND_TABLES: Readonly<Record<string, () => string>> = {
  'serve flags': () => flags({ ...CONFIG_FLAG, ...SERVE_OPTIONS }),
  'pub flags': () => flags(without(PUB_FLAGS, DIAL_FLAGS)),
  'message fields': messageFields,
  'sub flags': () => flags(without(SUB_FLAGS, DIAL_FLAGS)),
  'bench flags': () => flags(without(BENCH_FLAGS, DIAL_FLAGS)),
  'connection flags': () => flags(DIAL_FLAGS),
  'store flags': () => flags(STORE_FLAGS),
  'record flags': () => flags(RECORD_OWN_FLAGS),
  'import flags': () => flags(IMPORT_FLAGS),
  'decode flags': () => flags(DECODE_FLAGS),
  'ctl flags': () => flags(CONNECTION_FLAGS),
  'ctl actions': actions,
  'doctor checks': () =>
    markdown(
      ['id', 'what is true if all is well', 'remedy'],
      CHECKS.map(({ id, title, remedy }) => [code(id), title, remedy])
    )
};

function without(table: FlagTable, others: FlagTable): FlagTable {
  return Object.fromEntries(Object.entries(table).filter(([name]) => !(name in others)));
}

function flags(table: FlagTable): string {
  const rows = Object.entries(table).map(([name, row]) => {
    const { type, value, short, default: fallback, unit, about } = row;
    const spelled = spellingsOf(name, row).join(', ') + (type === 'boolean' ? '' : ` ${value}`);
    const isMs = value === 'SECONDS' && unit !== 's';
    const isUnset = fallback === undefined || (Array.isArray(fallback) && fallback.length === 0);
    const shown =
      isUnset || fallback === Number.MAX_SAFE_INTEGER ? '' : code(String(isMs ? Number(fallback) / 1000 : fallback));
    return [code(short === undefined ? spelled : `-${short}, ${spelled}`), shown, about];
  });
  return markdown(['flag', 'default', 'purpose'], rows);
}

function messageFields(): string {
  const { properties, ...fields } = MESSAGE_FIELDS;
  const rows = Object.entries(fields).map(([name, { about }]) => [code(name), about]);
  const listed = Object.entries(MESSAGE_PROPERTIES).map(([name, { about }]) => `${code(name)}: ${about}`);
  return markdown(['field', 'value'], [...rows, [code('properties'), `${properties.about}. ${listed.join('; ')}`]]);
}

function actions(): string {
  const rows = Object.values(ACTION_GROUPS)
    .flat()
    .map(({ name: action, usage, about, flags: own = [] }) => {
      const taken = own.map((name) => {
        const { type, value } = flagOf(action, name);
        return code(type === 'boolean' ? spelledAsFlag(name) : `${spelledAsFlag(name)} ${value}`);
      });
      return [code(usage), about, taken.join(', ')];
    });
  return markdown(['action', 'what it does', 'flags'], rows);
}
