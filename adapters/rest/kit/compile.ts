import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';

/** Compile the check of a schema. */
export function compile(schema: object): Validator {
  return Compile(schema as TSchema) as unknown as Validator;
}
