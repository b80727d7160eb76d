// The table is the truth. After each change, and again after a failed one, the rule of the key is made from what the
// table has then (`#apply`), so that the rules in use never differ from it. The order of a rule is computed from its
// group and its number: groups are far apart, and in each the newest rule has the lowest order, so it is evaluated
// first.

import type { BaseServices } from '../base/base-services.ts';
import { InvalidInput } from '../base/errors.ts';
import { checkNames, checkObject } from '../base/fields.ts';
import type { AccessRule } from '../records/access-rule.ts';
import { type ListPart, type NumberedTable, RecordOrder } from './record-order.ts';
import { checkRule, ReadAccessRule } from './rule.ts';
import type { RuleSet } from './rule-set.ts';

/** The clients to which a record applies. */
export type AclSubject =
  | {
      /** The client id. */
      readonly clientId: string;
    }
  | {
      /** The user name. */
      readonly username: string;
    }
  | 'all';

/** An access rule that is set at run time, with one topic filter and at most one of client id and user name. */
export interface AclRecord extends Pick<AccessRule, 'access' | 'clientId' | 'username' | 'exact'> {
  /** The topic filter. */
  readonly topic: string;
  /** `subpub` is another spelling of `pubsub`. */
  readonly action: 'publish' | 'subscribe' | 'pubsub' | 'subpub';
}

/** The persisted form of a record. */
interface StoredRecord {
  readonly access: 'allow' | 'deny';
  readonly action: AclRecord['action'];
  readonly exact?: true;
  /** Increases with each record that is set. */
  readonly number: number;
}

/** The table that keeps the records; see `Broker.table`. */
interface AclTable extends NumberedTable<StoredRecord> {
  /** Set the record of a key and move it to the end. */
  append(key: string, value: StoredRecord): Promise<void>;
  delete(key: string): Promise<boolean>;
}

const RECORD_NAMES = ['access', 'action', 'topic', 'exact', 'clientId', 'username'] as const;
/** The groups, in the order in which their rules are evaluated. */
const GROUPS: readonly AclGroup[] = ['clientId', 'username', 'all'];
/** The kind of subject whose records are listed. */
export type AclGroup = 'clientId' | 'username' | 'all';
/** Distance between the orders of two groups, which is greater than the number of possible records. */
const GROUP_DISTANCE = 2 ** 48;

/**
 * The access rules that are set at run time: `broker.access.acl`. The rules of the client id are evaluated first, then those of the user
 * name, then those for all; within each group, the newest first. A record for the same client and topic replaces the previous one.
 *
 * A change applies from the next packet. Methods that change records resolve when the change is persisted, and reject as `Table.set` does.
 */
export class AclRecords {
  readonly #table: AclTable;
  readonly #rules: RuleSet;
  readonly #services: BaseServices;
  readonly #onChange: () => void;
  /** The current rule for each key. */
  readonly #inForce = new Map<string, ReadAccessRule>();
  readonly #order: RecordOrder<StoredRecord>;
  readonly #counts = { clientId: 0, username: 0, all: 0 };
  #last = 0;

  /**
   * @internal
   * @param rules receives the rules of the records
   * @param onChange called after each change
   */
  constructor(services: BaseServices, table: AclTable, rules: RuleSet, onChange: () => void) {
    this.#table = table;
    this.#order = new RecordOrder(table);
    this.#rules = rules;
    this.#services = services;
    this.#onChange = onChange;
  }

  /** Number of records. */
  get size(): number {
    return this.#table.size;
  }

  /**
   * Set the rule for a client, or for all, and a topic filter.
   * @returns the record, with `publish` and `subscribe` instead of `pub` and `sub`
   * @throws InvalidInput ACCESS_RULE_INVALID, TOPIC_FILTER_INVALID, OPTION_UNKNOWN
   */
  async set(record: Omit<AclRecord, 'action'> & Pick<AccessRule, 'action'>): Promise<AclRecord> {
    checkAclRecord(record);
    const { access, topic, exact } = record;
    const key = keyOf(subjectOf(record), topic);
    const more = exact === true ? { exact } : {};
    const stored = { access, action: actionOf(record), ...more, number: ++this.#last };
    try {
      const done = this.#table.append(key, stored);
      this.#apply(key);
      await done;
    } catch (error) {
      this.#apply(key); // the table has its previous value again
      throw error;
    }
    return recordOf(key, stored);
  }

  /** Delete the rule for a client, or for all, and a topic filter. @returns whether there was one */
  async delete(subject: AclSubject, topic: string): Promise<boolean> {
    const key = keyOf(subject, topic);
    try {
      const done = this.#table.delete(key);
      this.#apply(key);
      return await done;
    } catch (error) {
      this.#apply(key);
      throw error;
    }
  }

  /** The rules of one client id, one user name, or for all, the newest first. */
  of(subject: AclSubject): AclRecord[] {
    const [clientId, username] =
      subject === 'all' ? [] : 'clientId' in subject ? [subject.clientId] : [undefined, subject.username];
    return this.#rules.of(clientId, username).flatMap(({ filter }) => {
      const key = keyOf(subject, filter ?? '');
      const stored = this.#table.get(key);
      return stored === undefined ? [] : [recordOf(key, stored)];
    });
  }

  /** All rules for client ids, for user names, or for all, the newest first. */
  list(group: AclGroup): AclRecord[] {
    const found = [...this.#table].filter(([key]) => key.startsWith(`${group}:`));
    return found.sort(([, a], [, b]) => b.number - a.number).map(([key, stored]) => recordOf(key, stored));
  }

  /** Number of rules for client ids, for user names, or for all. */
  count(group: AclGroup): number {
    return this.#counts[group];
  }

  /** A part of the list of rules for client ids, for user names, or for all, the oldest first. A long list is walked in slices. */
  async part(group: AclGroup, part: ListPart): Promise<AclRecord[]> {
    if (part.skip >= this.#counts[group]) return [];
    const isWanted = (key: string) => key.startsWith(`${group}:`);
    return this.#order.part(part, () => this.#services.pause(), recordOf, isWanted);
  }

  /** All rules, the oldest first. */
  *exported(): Iterable<AclRecord> {
    for (const [key, stored] of this.#order.lasting()) yield recordOf(key, stored);
  }

  /** Apply the records that were read from the store. */
  restored(): void {
    for (const [key, { number }] of this.#table) {
      this.#last = Math.max(this.#last, number);
      this.#put(key);
    }
    this.#order.oldestFirst();
    if (this.#table.size > 0) this.#onChange();
  }

  #apply(key: string): void {
    this.#put(key);
    this.#onChange();
  }

  /** Replace the rule of a key with the one in the table. */
  #put(key: string): void {
    const previous = this.#inForce.get(key);
    const group = groupOf(key);
    const stored = this.#table.get(key);
    const order = GROUPS.indexOf(group) * GROUP_DISTANCE - (stored?.number ?? 0);
    if (stored !== undefined && previous?.order === order) return; // as at a restart
    if (previous !== undefined) {
      this.#rules.remove(previous);
      this.#counts[group]--;
    }
    this.#inForce.delete(key);
    if (stored === undefined) return;
    const record = recordOf(key, stored);
    const rule = new ReadAccessRule(record, record.topic, order);
    this.#inForce.set(key, rule);
    this.#rules.add(rule);
    this.#counts[group]++;
  }
}

/** Check a record to be set. @throws InvalidInput ACCESS_RULE_INVALID, TOPIC_FILTER_INVALID, OPTION_UNKNOWN */
export function checkAclRecord(record: Omit<AclRecord, 'action'> & Pick<AccessRule, 'action'>): void {
  checkObject(record, 'rule');
  checkNames(record, RECORD_NAMES, 'an access rule that is set at run time');
  checkRule(record, 'rule');
  const { clientId, username, topic } = record;
  if (clientId !== undefined && username !== undefined)
    throw new InvalidInput('ACCESS_RULE_INVALID', 'username', 'undefined, because "clientId" is given', username);
  if (typeof topic !== 'string') throw new InvalidInput('ACCESS_RULE_INVALID', 'topic', 'one topic filter', topic);
}

function subjectOf({ clientId, username }: Pick<AccessRule, 'clientId' | 'username'>): AclSubject {
  if (clientId !== undefined) return { clientId };
  return username === undefined ? 'all' : { username };
}

/** The key of a record: group, length of the name, name and topic filter. */
function keyOf(subject: AclSubject, topic: string): string {
  if (subject === 'all') return `all:0:${topic}`;
  const [group, name] = 'clientId' in subject ? ['clientId', subject.clientId] : ['username', subject.username];
  return `${group}:${name.length}:${name}${topic}`;
}

function groupOf(key: string): AclGroup {
  return key.slice(0, key.indexOf(':')) as AclGroup;
}

function recordOf(key: string, { access, action, exact }: StoredRecord): AclRecord {
  const group = groupOf(key);
  const lengthEnd = key.indexOf(':', group.length + 1);
  const nameEnd = lengthEnd + 1 + Number(key.slice(group.length + 1, lengthEnd));
  const name = key.slice(lengthEnd + 1, nameEnd);
  return {
    ...(group === 'all' ? {} : { [group]: name }),
    topic: key.slice(nameEnd),
    ...(exact ? { exact } : {}),
    action,
    access
  };
}

function actionOf({ action = 'pubsub' }: Pick<AccessRule, 'action'>): AclRecord['action'] {
  if (action === 'pub') return 'publish';
  return action === 'sub' ? 'subscribe' : action;
}
