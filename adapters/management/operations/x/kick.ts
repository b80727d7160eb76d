import type { Static } from 'typebox';
import * as Type from 'typebox';
import { NotFound } from '../../../../lib/index.ts';
import { Fault } from '../../../rest/index.ts';
import { integer, listOf, objectOf, optional, text } from '../../../rest/kit/index.ts';
import { codesOf, faultOf } from '../../codes.ts';
import { type Context, type Operation, operation } from '../../operation.ts';
import { CONDITIONS, type Conditions, queryOf } from '../clients.ts';

/** Entries of a list that are processed in one turn. Their writes are committed together. */
const ENTRIES_AT_ONCE = 100;
/** As for a single client: the will is not published. */
const OPTIONS = { will: 'drop' } as const;

const BODY = objectOf(
  {
    clientids: optional(listOf(text(), 'The client ids; nothing else may be given', { maxItems: 10_000 })),
    all: optional(Type.Literal(true, { description: 'All clients; needed if there are no conditions' })),
    ...CONDITIONS.properties
  },
  { additionalProperties: false }
);
const RESULT = objectOf({
  clientid: text('The client id'),
  code: integer('0: disconnected, and its session has ended; 112: the client does not exist')
});
type Result = Static<typeof RESULT>;

/**
 * Kick the clients of a list.
 * @returns a result for each, in order
 */
async function kickEach({ broker }: Context, clientIds: readonly string[]): Promise<Result[]> {
  const results: Result[] = [];
  const one = async (clientid: string): Promise<Result> => {
    try {
      await broker.sessions.kick(clientid, OPTIONS);
      return { clientid, code: 0 };
    } catch (error) {
      const fault = error instanceof NotFound ? faultOf(error) : undefined;
      if (fault === undefined) throw error;
      return { clientid, code: codesOf(fault).code };
    }
  };
  for (let from = 0; from < clientIds.length; from += ENTRIES_AT_ONCE) {
    if (from > 0) await broker.directory.nextSlice();
    results.push(...(await Promise.all(clientIds.slice(from, from + ENTRIES_AT_ONCE).map(one))));
  }
  return results;
}

async function kickMatching({ broker }: Context, all: true | undefined, conditions: Conditions): Promise<number> {
  // the empty string is contained in every name
  const isAll = Object.values(conditions).every((condition) => condition === '');
  if (isAll && all === undefined)
    throw new Fault('missingParameter', 'give "clientids", at least one condition that is not empty, or "all": true');
  // clients without CONNECT have no session
  if (conditions.conn_state === 'idle') return 0;
  return broker.sessions.kickMatching(queryOf({ isOriginal: false }, conditions), OPTIONS);
}

/** Disconnecting many clients. */
export const KICK: readonly Operation[] = [
  operation({
    name: 'kick_clients',
    method: 'POST',
    path: '/x/clients/kick',
    descr: 'Disconnect clients and end their sessions: those of a list, or those that satisfy conditions',
    body: BODY,
    data: objectOf({
      count: integer('Number of sessions that were ended'),
      results: optional(listOf(RESULT, 'Of a list, the result for each, in order'))
    }),
    example: { body: { clientids: ['nobody'] }, data: { count: 0, results: [{ clientid: 'nobody', code: 112 }] } },
    audited: ({ body: { clientids } }) => ({ clientids, clientid_count: clientids?.length }),
    run: async (context, { body: { clientids, all, ...conditions } }) => {
      if (clientids === undefined) return { count: await kickMatching(context, all, conditions) };
      if (all !== undefined || Object.keys(conditions).length > 0)
        throw new Fault('wrongParameter', 'give "clientids" or conditions, not both', 'clientids');
      const results = await kickEach(context, clientids);
      return { count: results.filter(({ code }) => code === 0).length, results };
    }
  })
];
