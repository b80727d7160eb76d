/**
 * The kit of REST interfaces: rows of operations, their checks and documents. Separate from `adapters/rest`, which `serve`
 * loads, because the package of schemas takes 9 MB of memory.
 */

export { Audit } from './audit.ts';
export { check, checkQuery, loadChecks, parseQuery } from './checks.ts';
export { type Documented, DocumentSchemas } from './document-schemas.ts';
export { type DocumentStyle, openApi, shown } from './openapi.ts';
export {
  type AuditedNames,
  type Context,
  type Example,
  exampleOf,
  type Input,
  type Operation,
  type OriginalAnswer,
  operation,
  type PageRequest,
  type RowTypes
} from './operation.ts';
export { SAMPLE_AT, SAMPLE_CUT, STATEMENT_ERROR } from './rule-schemas.ts';
export {
  any,
  anyObject,
  anyOf,
  componentOf,
  flag,
  integer,
  listOf,
  number,
  objectOf,
  oneOf,
  optional,
  recordOf,
  text
} from './schemas.ts';
export { type ReplyStyle, type RestInterface, RestService } from './service.ts';
