import type { BannedKind } from '../../lib/index.ts';

/** The revisions of the management interface. */
export const REVISIONS = ['earlier', 'later', 'hosted'] as const;
export type RevisionName = (typeof REVISIONS)[number];

/** The revisions that have connections and sessions. */
export const EARLIER: readonly RevisionName[] = ['earlier'];
/** The revisions that have clients, and conditions in lists. */
export const LATER: readonly RevisionName[] = ['later', 'hosted'];

/** What a revision has and how it names things. Code tests these capabilities, never the name of a revision. */
export interface Revision {
  readonly name: RevisionName;
  /** The paths under which it is mounted by default. */
  readonly prefixes: readonly string[];
  /** The column of the record tables with its field names. */
  readonly dialect: 'earlier' | 'later';
  /** The name of the client id in requests and answers. */
  readonly clientIdName: 'client_id' | 'clientid';
  /** The names of what a ban is about. */
  readonly bannedKinds: Readonly<Record<BannedKind, string>>;
  /** A ban without a time at which it ends is one for five minutes. False: it does not end. */
  readonly bansEnd: boolean;
  /** With `errors: 'original'`: new credential records are refused with a printed term (`{error,existed}`) instead of a word. */
  readonly printsTerms: boolean;
  /** Lists of clients and subscriptions tell whether there is a next page. */
  readonly hasNext: boolean;
  /** Lists of subscriptions show the prefix of share groups: `$share/g/t`; otherwise `t`. */
  readonly hasSharePrefix: boolean;
  /** A broker that is looked up is answered with its node; in lists it always is. */
  readonly hasNodeOfBroker: boolean;
  /** The protocol of a WebSocket listener ends with its port. */
  readonly hasWebSocketPort: boolean;
  /** A plugin that was loaded is answered with the names of those that have started. */
  readonly listsLoaded: boolean;
  /** With `errors: 'original'`: the code of an operation on a plugin of all nodes that has failed; undefined: none. */
  readonly clusterPluginCode: 101 | undefined;
  /** Lists of statistics have the figures beside the name of the node; otherwise in a field `stats`. */
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
  // the documentation says /api/v3, the original answers at /api/v4
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
