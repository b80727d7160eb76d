import type { BannedKind } from '../../lib/index.ts';

/** The revisions of the management interface. */
export const REVISIONS = ['earlier', 'later', 'hosted'] as const satisfies readonly RevisionName[];
/** The name of a revision of the interface. */
export type RevisionName = 'earlier' | 'later' | 'hosted';

/** The revisions with connections and sessions. */
export const EARLIER = ['earlier'] as const satisfies readonly RevisionName[];
/** The revisions with clients, and with conditions in lists. */
export const LATER = ['later', 'hosted'] as const satisfies readonly RevisionName[];

/** The capabilities and names of a revision. Code tests these, never the name of a revision. */
export interface Revision {
  readonly name: RevisionName;
  /** The default prefixes. */
  readonly prefixes: readonly string[];
  /** The column of the record tables with the field names. */
  readonly dialect: 'earlier' | 'later';
  /** The name of the client id in requests and answers. */
  readonly clientIdName: 'client_id' | 'clientid';
  /** The names of the kinds of bans. */
  readonly bannedKinds: Readonly<Record<BannedKind, string>>;
  /** True: a ban without an end lasts five minutes. False: it does not end. */
  readonly bansEnd: boolean;
  /** With `errors: 'original'`: new credential records are refused with a printed term (`{error,existed}`) instead of a word. */
  readonly printsTerms: boolean;
  /** Lists of clients and subscriptions report whether there is a next page. */
  readonly hasNext: boolean;
  /** Lists of subscriptions show the prefix of share groups: `$share/g/t`; otherwise `t`. */
  readonly hasSharePrefix: boolean;
  /** A broker that is looked up is returned with its node; in lists this is always so. */
  readonly hasNodeOfBroker: boolean;
  /** The protocol of a WebSocket listener ends with its port. */
  readonly hasWebSocketPort: boolean;
  /** The answer to loading a plugin contains the names of the started ones. */
  readonly listsLoaded: boolean;
  /** With `errors: 'original'`: the code for a failed operation on a plugin of all nodes; undefined: none. */
  readonly clusterPluginCode: 101 | undefined;
  /** Lists of statistics have the values beside the name of the node; otherwise in a field `stats`. */
  readonly hasFlatStats: boolean;
}

const LATER_CAPABILITIES = {
  hasNext: true,
  hasSharePrefix: true,
  hasNodeOfBroker: true,
  hasWebSocketPort: true,
  listsLoaded: false,
  clusterPluginCode: undefined,
  hasFlatStats: false
} as const;
const LATER_BANNED = { clientId: 'clientid', username: 'username', address: 'peerhost' } as const;

/** The revisions by name. */
export const REVISION_ROWS: Readonly<Record<RevisionName, Revision>> = {
  earlier: {
    name: 'earlier',
    prefixes: ['/api/v3'],
    dialect: 'earlier',
    clientIdName: 'client_id',
    bannedKinds: { clientId: 'client_id', username: 'username', address: 'ip_address' },
    bansEnd: false,
    printsTerms: false,
    hasNext: false,
    hasSharePrefix: false,
    hasNodeOfBroker: false,
    hasWebSocketPort: false,
    listsLoaded: true,
    clusterPluginCode: 101,
    hasFlatStats: true
  },
  // documented as /api/v3, but the original answers at /api/v4
  later: {
    name: 'later',
    prefixes: ['/api/v3', '/api/v4'],
    dialect: 'later',
    clientIdName: 'clientid',
    bannedKinds: LATER_BANNED,
    bansEnd: true,
    printsTerms: false,
    ...LATER_CAPABILITIES
  },
  hosted: {
    name: 'hosted',
    prefixes: ['/api'],
    dialect: 'later',
    clientIdName: 'clientid',
    bannedKinds: LATER_BANNED,
    bansEnd: true,
    printsTerms: true,
    ...LATER_CAPABILITIES
  }
};
