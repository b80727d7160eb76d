import type { Entry } from 'ldapts';
import { decideByRules } from '../../../lib/adapter.ts';
import type { AccessRule, AuthorizeRequest, ClientInfo, Clock } from '../../../lib/index.ts';
import { AnswerCache } from '../outgoing/answer-cache.ts';
import type { Guard } from '../outgoing/guard.ts';
import { credentialsOf } from '../outgoing/template.ts';
import { undecided } from '../outgoing/undecided.ts';
import { ambiguity, isValue, textsOf } from './entries.ts';
import type { Values } from './names.ts';
import type { AclNames, LdapSettings } from './options.ts';

type Entries = readonly Entry[];

/** The rights of clients, by the attributes of their entries. Concurrent questions about a client share one search. */
export class EntryRights {
  readonly #acl: AclNames;
  readonly #settings: LdapSettings;
  readonly #guard: Guard;
  readonly #search: (values: Values) => Promise<Entries | undefined>;
  /** The placeholders that occur: the entry depends only on their values. */
  readonly #letters: readonly string[];
  /** Entries cached for `cacheMs`. */
  readonly #kept: AnswerCache<Entries> | undefined;
  /** Searches in progress. */
  readonly #searches = new Map<string, Promise<Entries | undefined>>();

  /** @param search reads at most two entries of a client, with the attributes `attributesOf`; undefined if the server has failed */
  constructor(
    acl: AclNames,
    settings: LdapSettings,
    clock: Clock,
    guard: Guard,
    search: (values: Values) => Promise<Entries | undefined>
  ) {
    const { userDn, filter, cacheMs, cacheSize } = settings;
    this.#acl = acl;
    this.#settings = settings;
    this.#guard = guard;
    this.#search = search;
    this.#letters = [...new Set((userDn ?? filter).letters)];
    this.#kept = cacheMs === 0 ? undefined : new AnswerCache(clock, cacheSize);
  }

  /** Search again for each client, even if a search is in progress. */
  forget(): void {
    this.#kept?.clear();
    this.#searches.clear();
  }

  /** Authorize a client. Synchronous if the entry is cached. */
  authorize(request: AuthorizeRequest): Promise<boolean | undefined> | boolean | undefined {
    const { client, action, topic } = request;
    const decide = (entries: Entries | undefined) =>
      entries === undefined ? undecided(request, this.#settings.onError) : this.#decide(entries, client, action, topic);
    const entries = this.entriesOf({ c: client.clientId, u: client.username ?? '' });
    return entries instanceof Promise ? entries.then(decide) : decide(entries);
  }

  /**
   * The entries of a client, cached or searched for.
   * @returns undefined if the server has failed
   */
  entriesOf(values: Values): Promise<Entries | undefined> | Entries {
    // a server could take the part before the NUL for the whole name
    if (this.#letters.some((letter) => values[letter] === '' || values[letter].includes('\0'))) return [];
    const names = credentialsOf(values, this.#letters);
    const known = this.#kept?.get(this.#kept.keyOf(names));
    if (known !== undefined) return known;
    const current = this.#searches.get(names);
    if (current !== undefined) return current;
    const search = this.#search(values).then((entries) => {
      if (this.#searches.get(names) !== search) return entries; // forget was called meanwhile
      this.#searches.delete(names);
      if (entries !== undefined) this.#kept?.set(this.#kept.keyOf(names), entries, this.#settings.cacheMs);
      return entries;
    });
    this.#searches.set(names, search);
    return search;
  }

  #decide(
    entries: Entries,
    client: ClientInfo,
    action: AuthorizeRequest['action'],
    topic: string
  ): boolean | undefined {
    const [entry] = entries;
    if (entry === undefined) return undefined;
    if (isValue(entry, this.#settings.enabledAttribute, 'FALSE')) return false;
    try {
      if (entries.length > 1) throw ambiguity(client.username ?? '');
      return decideByRules(rulesIn(entry, this.#acl), client, action, topic, 'rules of the entry');
    } catch (error) {
      this.#guard.report(error);
      return false;
    }
  }
}

/** The attributes that contain the rights of clients. */
export function attributesOf({ publish, subscribe, all }: AclNames, { enabledAttribute }: LdapSettings): string[] {
  return [publish, subscribe, all, ...(enabledAttribute === undefined ? [] : [enabledAttribute])];
}

/**
 * The access rules in an entry. Everything that they do not allow is denied; an entry without the attributes has no
 * rules.
 */
function rulesIn(entry: Entry, names: AclNames): AccessRule[] {
  const lists = [
    ['publish', names.publish],
    ['subscribe', names.subscribe],
    ['pubsub', names.all]
  ] as const;
  const allowed = lists.flatMap(([action, name]): AccessRule[] => {
    const topic = textsOf(entry, name);
    return topic.length === 0 ? [] : [{ access: 'allow', action, topic }];
  });
  return allowed.length === 0 ? [] : [...allowed, { access: 'deny', action: 'pubsub' }];
}
