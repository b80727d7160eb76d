// A row for each operation. The revisions differ in names, in the unit of times and in whether a ban ends by default;
// these differences are columns of `FIELDS` and of the revision, never a comparison with its name. The string
// "undefined" stands for an absent value, as in the documented products, and is accepted in requests. A ban that is
// sent back as it was listed changes nothing.

import * as Type from 'typebox';
import type { Ban, BannedKind } from '../../../lib/index.ts';
import { Fault } from '../../rest/index.ts';
import { anyOf, componentOf, flag, integer, listOf, number, objectOf, optional, text } from '../../rest/kit/index.ts';
import { Listing } from '../listing.ts';
import { msOf } from '../moment.ts';
import { type Context, type Operation, operation } from '../operation.ts';
import { checkDeleted, checkName } from '../records.ts';
import { EARLIER, LATER, type Revision } from '../revisions.ts';

/** The value that is written for a field that is not set. */
const UNDEFINED = 'undefined';

const AS = text(
  'The kind of "who": clientid, username or peerhost; in the earlier revision client_id, username or ip_address'
);
const moment = (description: string) => optional(number(description));

const BAN = objectOf({
  who: text('The client id, the user name, or the IP address or network', { min: 1 }),
  as: AS,
  by: optional(text('The author of the ban', { default: 'user' })),
  reason: optional(text('The reason')),
  desc: optional(text('More about the reason')),
  at: moment('The time at which the ban was created, in seconds or milliseconds since 1970. Default: now'),
  until: optional(
    Type.Unsafe<number | typeof UNDEFINED>({
      anyOf: [{ type: 'number' }, { const: UNDEFINED }],
      description:
        'The time at which the ban ends, in seconds or milliseconds since 1970; "undefined": it does not end. Default: in five minutes; in the earlier revision: it does not end'
    })
  )
});
const MADE = objectOf({
  ...BAN.properties,
  disconnect: optional(
    flag('Disconnect the connected clients that the ban is about, as the option banDisconnects of the broker does')
  )
});
const ANSWER = objectOf({
  ...MADE.properties,
  disconnected: optional(integer('With "disconnect", the number of connections that were ended'))
});
/** The client whose ban is looked up. */
const OF_CLIENT = objectOf({
  _clientid: optional(text('Only the ban that refuses the client with this client id')),
  _username: optional(text('Only the ban that refuses the client with this user name')),
  _peerhost: optional(
    text('Only the ban that refuses the client with this IP address, which a banned network may contain')
  )
});
const SHOWN = componentOf('Ban', 'A ban', {
  who: text('The client id, the user name, or the IP address or network'),
  as: AS,
  by: text('The author of the ban'),
  reason: text('The reason; "undefined" if there is none'),
  desc: optional(
    text('More about the reason; "undefined" if there is none', { documented: { in: EARLIER, isRequired: true } })
  ),
  at: optional(
    integer('When the ban was created, in seconds since 1970', { documented: { in: LATER, isRequired: true } })
  ),
  until: anyOf([integer(), Type.Literal(UNDEFINED)], 'When the ban ends, in seconds since 1970; "undefined": never')
});
const OF_KIND = objectOf({ as: optional(AS) });

/** A field of a ban in the dialects that have it. */
interface BanField {
  readonly name: string;
  readonly in: readonly Revision['dialect'][];
  from(ban: Ban, revision: Revision): unknown;
}

const BOTH = ['earlier', 'later'] as const;
const FIELDS: readonly BanField[] = [
  { name: 'who', in: BOTH, from: ({ who }) => who },
  { name: 'as', in: BOTH, from: ({ kind }, { bannedKinds }) => bannedKinds[kind] },
  { name: 'reason', in: BOTH, from: ({ reason }) => reason ?? UNDEFINED },
  { name: 'desc', in: ['earlier'], from: ({ description }) => description ?? UNDEFINED },
  { name: 'by', in: BOTH, from: ({ by }) => by },
  { name: 'at', in: ['later'], from: ({ at }) => seconds(at) },
  { name: 'until', in: BOTH, from: ({ until }) => (until === Infinity ? UNDEFINED : seconds(until)) }
];

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}

/** The original products interpret all times as seconds. */
function ms({ isOriginal }: Context, time: number | undefined): number | undefined {
  return time === undefined || isOriginal ? time && time * 1000 : msOf(time);
}

/** A string of a request; "undefined" is shown for an absent one. */
function textOf(text: string | undefined): string | undefined {
  return text === UNDEFINED ? undefined : text;
}

/**
 * The end of a ban.
 * @throws Fault wrongParameter if it is in the past
 */
function endOf(context: Context, until: number | typeof UNDEFINED | undefined): number | undefined {
  if (until === UNDEFINED || (until === undefined && !context.revision.bansEnd)) return Infinity;
  const end = ms(context, until);
  if (end !== undefined && end <= context.broker.clock.now() && !context.isOriginal)
    throw new Fault('wrongParameter', 'the parameter "until" must be a time in the future', 'until');
  return end;
}

function shown(ban: Ban, revision: Revision): Record<string, unknown> {
  const fields = FIELDS.filter((field) => field.in.includes(revision.dialect));
  return Object.fromEntries(fields.map(({ name, from }) => [name, from(ban, revision)]));
}

/** True if a ban is sent back as it was listed, and is therefore unchanged: listed times have no milliseconds. */
function isAsShown(listed: Record<string, unknown>, body: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(listed).every(([name, value]) => body[name] === value);
}

/** The ban of the examples. */
function intruder(revision: Revision): Record<string, unknown> {
  const [at, until] = [1_767_225_600_000, 1_767_225_900_000];
  return shown({ kind: 'clientId', who: 'intruder', by: 'ann', reason: 'guesses passwords', at, until }, revision);
}

/** The kind of a ban by its name. @throws Fault wrongParameter */
function kindNamed({ bannedKinds }: Revision, name: string): BannedKind {
  const found = Object.entries(bannedKinds).find(([, theirs]) => theirs === name);
  if (found !== undefined) return found[0] as BannedKind;
  const names = Object.values(bannedKinds).join(', ');
  throw new Fault('wrongParameter', `the parameter "as" must be one of: ${names}`, 'as');
}

async function lift(context: Context, as: string, who: string): Promise<void> {
  const { broker, revision } = context;
  checkDeleted(context, await broker.access.banned.delete(kindNamed(revision, as), who), `ban of the ${as} "${who}"`);
}

/**
 * The answer of the original products.
 * @param mandatory the parameters of which one is missing
 */
function originalAnswer({ kind, original }: Fault, { bannedKinds }: Revision, mandatory: readonly string[]) {
  const quoted = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ');
  if (kind === 'missingParameter') return { code: 107, message: `missing mandatory params: [${quoted(mandatory)}]` };
  if (kind !== 'wrongParameter' || original !== 'as') return undefined;
  return { code: 108, message: `value of 'as' must be one of: [${quoted(Object.values(bannedKinds))}]` };
}

/** Bans of clients. */
export const BANNED: readonly Operation[] = [
  operation({
    name: 'list_banned',
    method: 'GET',
    path: '/banned',
    ctl: { 'ban list': 'who as reason by at until' },
    descr: 'List banned',
    example: (revision) => ({ data: [intruder(revision)] }),
    paged: 'max',
    data: listOf(SHOWN),
    query: OF_CLIENT,
    run: async ({ broker: { access }, page, revision }, { query }) => {
      const { _clientid = '', _username, _peerhost } = query;
      if (Object.keys(query).length > 0) {
        const ban = access.banned.find({
          clientId: _clientid,
          username: _username,
          transportInfo: { remoteAddress: _peerhost }
        });
        return new Listing(ban === undefined ? [] : [ban], (one) => shown(one, revision), {
          count: ban === undefined ? 0 : 1
        });
      }
      const bans = await access.banned.list(page);
      return new Listing(bans, (ban) => shown(ban, revision), { count: access.banned.size });
    }
  }),
  operation({
    name: 'create_banned',
    method: 'POST',
    path: '/banned',
    ctl: 'ban add WHO=who --as --reason --seconds=until --disconnect',
    descr: 'Create banned',
    example: ({ bannedKinds: { address } }) => {
      const ban = { who: '192.0.2.66', as: address, reason: 'scans ports', until: 1_798_761_600 };
      return { body: ban, data: ban };
    },
    body: MADE,
    data: ANSWER,
    originalAnswer: (fault, revision) => originalAnswer(fault, revision, ['who', 'as']),
    run: async (context, { body }) => {
      const { who, as, by, reason, desc: description, at, until, disconnect = false } = body;
      checkName(context, 'who', who);
      const kind = kindNamed(context.revision, as);
      const { banned } = context.broker.access;
      const present = banned.get(kind, who);
      let disconnected = 0;
      if (present === undefined || !isAsShown(shown(present, context.revision), body)) {
        const times = { at: ms(context, at), until: endOf(context, until) };
        const ban = { kind, who, by, reason: textOf(reason), description: textOf(description), ...times };
        ({ disconnected } = await banned.create(ban));
      }
      if (!disconnect || context.isOriginal) return body;
      return { ...body, disconnected: disconnected + banned.disconnect(kind, who) };
    }
  }),
  operation({
    name: 'delete_banned',
    method: 'DELETE',
    path: '/banned/:who',
    descr: 'Delete banned',
    example: ({ bannedKinds: { clientId } }) => ({ params: { who: 'intruder' }, query: { as: clientId } }),
    query: OF_KIND,
    body: optional(OF_KIND),
    originalAnswer: (fault, revision) => originalAnswer(fault, revision, ['as']),
    run: (context, { params: { who }, query, body }) => {
      const as = query.as ?? body?.as;
      if (as === undefined)
        throw new Fault('missingParameter', 'the parameter "as" is missing, in the query or the body', 'as');
      if (body?.as !== undefined && body.as !== as && !context.isOriginal)
        throw new Fault('wrongParameter', 'the parameter "as" of the query is another one than that of the body', 'as');
      return lift(context, as, who);
    }
  }),
  operation({
    name: 'delete_banned',
    method: 'DELETE',
    path: '/banned/:as/:who',
    ctl: 'ban remove WHO=who --as',
    descr: 'Delete banned',
    example: ({ bannedKinds: { clientId } }) => ({ params: { as: clientId, who: 'intruder' } }),
    in: LATER,
    originalAnswer: (fault, revision) => originalAnswer(fault, revision, ['as']),
    run: (context, { params: { as, who } }) => lift(context, as, who)
  })
];
