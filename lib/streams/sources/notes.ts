import type { StreamTable } from '../host.ts';
import type { SourceNotes, StreamDefinition } from '../types.ts';
import { sourceTypeName } from './stream-settings.ts';

/** The notes of a source type, in the table of all notes. */
export function notesOf(table: StreamTable<string>, type: string): SourceNotes {
  const prefix = `${type} `;
  return {
    get: (key) => table.get(prefix + key),
    set: (key, value) => table.set(prefix + key, value),
    delete: (key) => table.delete(prefix + key),
    *[Symbol.iterator]() {
      for (const [key, value] of table) if (key.startsWith(prefix)) yield [key.slice(prefix.length), value] as const;
    }
  };
}

/** A string that identifies a stream and the place that it reads from: its name, type, DATASOURCE and CONF_KEY. */
export function placeOf(definition: StreamDefinition): string {
  const { kind, name, options } = definition;
  const { DATASOURCE = '', CONF_KEY = '' } = options;
  return JSON.stringify([kind, name, sourceTypeName(definition), DATASOURCE, CONF_KEY]);
}

/** Parse a result of `placeOf`. @returns the definition, without columns */
export function definitionOfPlace(place: string): StreamDefinition {
  const [kind, name, TYPE, DATASOURCE, CONF_KEY] = JSON.parse(place);
  return { kind, name, columns: undefined, options: { TYPE, DATASOURCE, CONF_KEY }, sql: place };
}
