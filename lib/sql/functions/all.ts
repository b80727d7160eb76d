import type { Dialect } from '../dialect.ts';
import { CONVERSION_FUNCTIONS, typeTests } from './conversion.ts';
import { DATE_FUNCTIONS } from './dates.ts';
import { ENCODING_FUNCTIONS, STORE_FUNCTIONS } from './encoding.ts';
import type { SqlFunction } from './function.ts';
import { LIST_FUNCTIONS } from './lists.ts';
import { BIT_FUNCTIONS, NUMBER_FUNCTIONS } from './numbers.ts';
import { TEXT_FUNCTIONS } from './text.ts';

/** The functions of both dialects of rules over events, by family. Those of streams are in `lib/streams/functions`. */
export function commonFunctions(dialect: Dialect): readonly SqlFunction[] {
  return [
    ...NUMBER_FUNCTIONS,
    ...BIT_FUNCTIONS,
    ...CONVERSION_FUNCTIONS,
    ...typeTests(dialect.nullIsAbsent),
    ...TEXT_FUNCTIONS,
    ...LIST_FUNCTIONS,
    ...ENCODING_FUNCTIONS,
    ...DATE_FUNCTIONS,
    ...STORE_FUNCTIONS
  ];
}
