import type { ComponentChildren } from 'preact';
import { type ParamSpec, paramOf, textOfParam } from '../model/rules.ts';
import { T } from '../texts.ts';
import { type FieldRow, type FieldTexts, Form } from './fields.tsx';
import { InputError } from './problem.tsx';

/** Values by the names of properties. */
export type Properties = Readonly<Record<string, unknown>>;

/** Properties with their descriptions, in the order of the form. */
type Specs = readonly (readonly [name: string, spec: ParamSpec])[];

/** The field with the properties that have none, as JSON. */
const OTHERS = '(others)';

/** A form for the properties of something, made from their descriptions. Properties that are neither required nor set are shown on request. */
export function PropertiesForm({
  specs,
  values,
  submit,
  hasOthers = false,
  hidesRare = hasOthers,
  onSubmit,
  onCancel,
  copies
}: {
  readonly specs: Specs;
  readonly values: Properties;
  readonly submit: string;
  /** Properties that are not described may be given as well. */
  readonly hasOthers?: boolean;
  /** Properties that are neither required nor set are shown on request. Default: as `hasOthers`. */
  readonly hidesRare?: boolean;
  readonly onSubmit: (properties: Properties) => Promise<unknown>;
  readonly onCancel: () => void;
  /** The commands to copy for properties; not shown while a field is not valid. */
  readonly copies?: (properties: Properties) => ComponentChildren;
}) {
  const known = new Map(specs);
  const others = Object.fromEntries(Object.entries(values).filter(([name]) => !known.has(name)));
  const fields: FieldRow[] = specs.map(([name, spec]) => ({
    ...fieldOf(name, spec),
    ...(hidesRare && spec.required !== true && values[name] === undefined && { isMinor: true })
  }));
  if (hasOthers)
    fields.push({
      name: OTHERS,
      label: T.properties.others,
      type: 'lines',
      help: T.properties.othersHelp,
      isMinor: Object.keys(others).length === 0 && specs.length > 0
    });
  return (
    <Form
      fields={fields}
      initial={{
        ...Object.fromEntries(
          specs.map(([name, spec]) => [
            name,
            textOfParam(values[name] ?? spec.default ?? (spec.required ? spec.enum?.[0] : undefined))
          ])
        ),
        [OTHERS]: Object.keys(others).length === 0 ? '' : JSON.stringify(others, null, 2)
      }}
      submit={submit}
      onCancel={onCancel}
      onSubmit={async (texts) => onSubmit(propertiesIn(specs, texts))}
    >
      {copies &&
        ((texts) => {
          try {
            return copies(propertiesIn(specs, texts));
          } catch {
            return null; // the form says which field is not valid
          }
        })}
    </Form>
  );
}

/** The properties in the fields of a form. @throws InputError that names the field which is not valid */
function propertiesIn(specs: Specs, texts: FieldTexts): Properties {
  const given = specs
    .map(([name, spec]) => [name, propertyIn(name, spec, texts[name] ?? '')] as const)
    .filter(([, value]) => value !== undefined);
  return { ...objectIn(T.properties.others, texts[OTHERS] ?? ''), ...Object.fromEntries(given) };
}

/** The object in a text. @param label of its field @throws InputError if it is not an object in JSON */
export function objectIn(label: string, text: string): Properties {
  if (text.trim() === '') return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new InputError(T.properties.notJson(label, (error as Error).message));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new InputError(T.properties.notObject(label));
  return value as Properties;
}

function propertyIn(name: string, spec: ParamSpec, text: string): unknown {
  try {
    return paramOf(spec, text);
  } catch (error) {
    throw new InputError(T.properties.notJson(name, (error as Error).message));
  }
}

function fieldOf(
  name: string,
  { type, title, description, required, enum: values, input, secret }: ParamSpec
): FieldRow {
  const shared = {
    name,
    label: title?.en || name,
    ...(description?.en && { help: description.en }),
    isRequired: required === true && type !== 'boolean'
  };
  if (values !== undefined)
    return {
      ...shared,
      type: 'choice',
      choices: [
        ...(required ? [] : [['', T.properties.byDefault] as const]),
        ...values.map((value) => [`${value}`, `${value}`] as const)
      ]
    };
  if (type === 'boolean')
    return {
      ...shared,
      type: 'choice',
      choices: [
        ['', T.properties.byDefault],
        ['true', T.form.yes],
        ['false', T.form.no]
      ]
    };
  if (type === 'number') return { ...shared, type: 'number' };
  if (type === 'password' || (secret === true && type === 'string')) return { ...shared, type: 'secret' };
  return { ...shared, type: input === 'textarea' || type === 'object' || type === 'array' ? 'lines' : 'text' };
}
