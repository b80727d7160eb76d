import { type Dialect, namesIn } from './record-table.ts';
import { CLIENT_FIELDS, CONNECTION_FIELDS, SESSION_FIELDS } from './session-records.ts';
import { SUBSCRIPTION_FIELDS } from './subscription-record.ts';

const TABLES: Readonly<Record<'client' | 'connection' | 'session' | 'subscription', object>> = {
  client: CLIENT_FIELDS,
  connection: CONNECTION_FIELDS,
  session: SESSION_FIELDS,
  subscription: SUBSCRIPTION_FIELDS
};

/**
 * The fields of a record in an interface: their names in the library by their names in the interface, in the order of
 * the fields.
 */
export function recordNames(
  record: 'client' | 'connection' | 'session' | 'subscription',
  dialect: Dialect
): ReadonlyMap<string, string> {
  return namesIn(TABLES[record] as never, dialect) as Map<string, string>;
}
