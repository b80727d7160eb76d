// Rows have the columns of rules, so that what a row shows is what a condition can name, and a row can be the input of
// a test of a rule. Events from which rules cannot select get columns by the types of their fields.

import { documentedName } from '../../base/fields.ts';
import { EVENTS, type EventName, type FieldTypes } from '../../events/catalogue.ts';
import type { BrokerEvents } from '../../events/event-types.ts';
import type { SubscriptionOptions } from '../../events/subscription-options.ts';
import type { Ban } from '../../records/ban.ts';
import type { ListenerHandle } from '../../records/listener.ts';
import { shownUsername } from '../../records/shown-username.ts';
import { CLIENT } from '../../rules/events/client-columns.ts';
import type { Column, EventContext } from '../../rules/events/column.ts';
import { CatalogueEvent, type EventRow } from '../../rules/events/event.ts';
import { MESSAGE, PUBLISHER } from '../../rules/events/message-columns.ts';
import { RULE_EVENTS } from '../../rules/events/rows.ts';
import type { Members } from '../../sql/json-members.ts';
import type { Value } from '../../sql/values.ts';
import { innerFilter } from '../../topics/topic.ts';

/** An event of the catalogue with the columns of its rows. */
export interface TailedEvent extends EventRow {
  /** The event of the catalogue. */
  readonly source: EventName;
  /** Tells whether a value has these columns; a drop for one receiver has others than a drop for all. */
  readonly accepts: (value: BrokerEvents[EventName]) => boolean;
  /** The columns that are messages of errors, in which values of messages can stand. */
  readonly errors?: ReadonlySet<string>;
}

/** The event of a published message, for which a watcher is used. */
export const PUBLISH: TailedEvent = RULE_EVENTS['message.publish'];

/** The columns of an event: those of rules, or else those that its fields have. */
export function tailedEvents(name: EventName): readonly TailedEvent[] {
  const rows = Object.values(RULE_EVENTS).filter(({ source }) => source === name);
  return rows.length > 0 ? rows : [derived(name)];
}

/** The columns in which a token could stand. */
const USER_COLUMNS: ReadonlySet<string> = new Set(['username', 'from_username']);

/** An event as a tail sees it: user names that are tokens are hidden, also from conditions, and if they must be, payloads and messages of errors. */
export class SeenEvent extends CatalogueEvent {
  readonly #hidesPayload: boolean;
  readonly #errors: ReadonlySet<string> | undefined;

  constructor(row: TailedEvent, value: BrokerEvents[EventName], context: EventContext, hidesPayload: boolean) {
    super(row, value, context);
    this.#hidesPayload = hidesPayload;
    this.#errors = row.errors;
  }

  override decoded(name: string, members?: Members): Value {
    return this.#isHidden(name) ? undefined : super.decoded(name, members);
  }

  override column(name: string): Value {
    if (this.#isHidden(name)) return undefined;
    const value = super.column(name);
    return typeof value === 'string' && USER_COLUMNS.has(name) ? shownUsername(value) : value;
  }

  #isHidden(name: string): boolean {
    return this.#hidesPayload && (name === 'payload' || this.#errors?.has(name) === true);
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the type of the value follows from the name of the event
type AnyColumn = Column<any>;

const OF_CLIENT = { clientid: CLIENT.clientid, username: CLIENT.username, peerhost: CLIENT.peerhost };
const OF_MESSAGE = {
  id: MESSAGE.id,
  from_clientid: PUBLISHER.clientid,
  from_username: PUBLISHER.username,
  payload: MESSAGE.payload,
  topic: MESSAGE.topic,
  qos: MESSAGE.qos,
  flags: MESSAGE.flags,
  pub_props: MESSAGE.pub_props,
  publish_received_at: MESSAGE.publish_received_at
};

/** The columns of a field that is an object, by the name of its type. */
const OF_TYPE: { readonly [T in keyof FieldTypes]?: (field: string) => Readonly<Record<string, AnyColumn>> } = {
  ClientInfo: () => OF_CLIENT,
  'ClientInfo | undefined': () =>
    Object.fromEntries(
      Object.entries<AnyColumn>(OF_CLIENT).map(([name, column]) => [
        name,
        (value, event) => (value.client === undefined ? undefined : column(value, event))
      ])
    ),
  Message: () => OF_MESSAGE,
  SubscriptionOptions: (field) => ({ qos: (value) => (value[field] as SubscriptionOptions).qos }),
  'SubscribeResult[]': (field) => ({
    results: (value) =>
      (value[field] as FieldTypes['SubscribeResult[]']).map(({ filter, reasonCode }) => ({
        topic: filter,
        reason_code: reasonCode
      }))
  }),
  Ban: (field) => ({
    kind: (value) => (value[field] as Ban).kind,
    who: (value) => (value[field] as Ban).who,
    by: (value) => (value[field] as Ban).by,
    reason: (value) => (value[field] as Ban).reason
  }),
  ListenerHandle: (field) => ({ listener: (value) => (value[field] as ListenerHandle).name }),
  'ListenerHandle[]': (field) => ({
    listeners: (value) => (value[field] as readonly ListenerHandle[]).map(({ name }) => name)
  }),
  Error: (field) => ({ [field]: (value) => (value[field] as Error).message, code: (value) => codeOf(value[field]) }),
  'Error | undefined': (field) => ({
    [field]: (value) => (value[field] as Error | undefined)?.message,
    code: (value) => codeOf(value[field])
  })
};

function codeOf(error: unknown): Value {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' ? code : undefined;
}

function derived(source: EventName): TailedEvent {
  const fields = Object.entries<keyof FieldTypes>(EVENTS[source].fields);
  const ofFields = fields.flatMap(([field, type]) => Object.entries(OF_TYPE[type]?.(field) ?? plain(field)));
  const columns = new Map<string, AnyColumn>([
    ['event', () => source],
    ...ofFields,
    ['timestamp', (_value, { timestamp }) => timestamp],
    ['node', (_value, { node }) => node]
  ]);
  return {
    source,
    name: source as EventRow['name'], // only rules read the name
    accepts: () => true,
    errors: new Set(fields.flatMap(([field, type]) => (type.startsWith('Error') ? [field] : []))),
    names: [...columns.keys()],
    columns
  };
}

/** The column of a string, number or boolean, or of a list of strings. A topic filter is the topic, as in rules. */
function plain(field: string): Readonly<Record<string, AnyColumn>> {
  if (field === 'filter') return { topic: (value) => innerFilter(value[field] as string) };
  return { [documentedName(field)]: (value) => value[field] as Value };
}
