import type { FieldTable } from '../../base/fields.ts';
import type { TemplateTools } from '../template/functions-tools.ts';
import { compileTemplate, type Template } from '../template/template.ts';
import type { Properties } from '../types.ts';

/** The properties that are filled in for each output, by name. */
export type DynamicProperties = ReadonlyMap<string, (rows: unknown) => unknown>;

/** Settings of property templates. */
interface DynamicSetup {
  readonly tools: TemplateTools;
  /** Maximum number of characters of a filled-in template. */
  readonly most: number;
  /** True for the templates of a URL. */
  readonly isUrl?: boolean;
}

/**
 * Find the properties that are templates. If rows are not sent separately, fields are those of the first row.
 * @throws InvalidInput PROPERTY_INVALID
 */
export function findDynamic(table: FieldTable, properties: Properties, setup: DynamicSetup): DynamicProperties {
  const dynamic = new Map<string, (rows: unknown) => unknown>();
  for (const [name, row] of Object.entries(table)) {
    if (row.isTemplate === undefined) continue;
    const fill = fillOf(name, properties[name], { ...setup, isUrl: row.isTemplate === 'url' });
    if (fill !== undefined) dynamic.set(name, fill);
  }
  return dynamic;
}

/** @returns undefined if a value contains no template */
function fillOf(
  property: string,
  value: unknown,
  setup: DynamicSetup
): Template | ((rows: unknown) => unknown) | undefined {
  if (typeof value === 'string')
    return value.includes('{{')
      ? compileTemplate(value, setup.tools, { property, most: setup.most, readsFirst: true, isUrl: setup.isUrl })
      : undefined;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const parts = Object.entries(value).map(([key, each]) => ({
    key,
    each,
    fill: fillOf(`${property}.${key}`, each, setup)
  }));
  if (parts.every(({ fill }) => fill === undefined)) return undefined;
  return (rows) =>
    Object.fromEntries(parts.map(({ key, each, fill }) => [key, fill === undefined ? each : fill(rows)]));
}
