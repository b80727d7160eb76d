import type { BannedKind, ClientRecord, SessionRecord } from '../../lib/index.ts';

/** The revisions of the management interface. */
export const REVISIONS = ['earlier', 'later', 'hosted'] as const;
export type RevisionName = (typeof REVISIONS)[number];

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
  /** Lists of clients and subscriptions tell whether there is a next page. */
  readonly hasNext: boolean;
}

/** The records of clients in the revisions. */
export type ListedClient = ClientRecord | SessionRecord;

const LATER_BANNED = { clientId: 'clientid', username: 'username', address: 'peerhost' } as const;

/** The revisions by name. */
export const REVISION_ROWS: Readonly<Record<RevisionName, Revision>> = {
  earlier: {
    name: 'earlier',
    prefixes: ['/api/v3'],
    dialect: 'earlier',
    clientIdName: 'client_id',
    bannedKinds: { clientId: 'client_id', username: 'username', address: 'ip_address' },
    hasNext: false
  },
  // the documentation says /api/v3, the original answers at /api/v4
  later: {
    name: 'later',
    prefixes: ['/api/v3', '/api/v4'],
    dialect: 'later',
    clientIdName: 'clientid',
    bannedKinds: LATER_BANNED,
    hasNext: true
  },
  hosted: {
    name: 'hosted',
    prefixes: ['/api'],
    dialect: 'later',
    clientIdName: 'clientid',
    bannedKinds: LATER_BANNED,
    hasNext: true
  }
};
