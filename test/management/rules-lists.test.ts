import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { REVISIONS } from '../../adapters/management/revisions.ts';
import { serveRules } from '../support/rules.ts';

type Row = { readonly id: string };

/** Serve three rules. @returns the ids of the rules, and the `meta` of the answer, for a query */
async function serveThree(revision: (typeof REVISIONS)[number]) {
  const served = await serveRules({ revision });
  const { rules } = served.broker;
  await rules.create({ id: 'one', sql: 'SELECT * FROM "a/b", "c"', actions: [], description: 'first rule' });
  await rules.create({ id: 'two', sql: 'SELECT * FROM "a/+"', actions: [], isEnabled: false });
  await rules.create({
    id: 'three',
    sql: 'SELECT * FROM "$events/client_connected"',
    actions: [],
    description: 'third'
  });
  const listed = async (query: string) => {
    const { body } = await served.call('GET', `/api/rules${query}`);
    return { ids: body.data.map(({ id }: Row) => id), meta: body.meta };
  };
  return { listed, [Symbol.asyncDispose]: () => served[Symbol.asyncDispose]() };
}

for (const revision of REVISIONS)
  describe(`The list of rules in the revision "${revision}"`, () => {
    it('returns all rules in order of creation, without pages unless a page is requested', async () => {
      await using served = await serveThree(revision);
      const all = { ids: ['one', 'two', 'three'], meta: undefined };
      for (const query of ['', '/', '?enable_paging=false', '?enable_paging=false&_page=2&_limit=1', '?_=123'])
        assert.deepEqual(await served.listed(query), all, query);
    });

    it('returns pages if a page is requested', async () => {
      await using served = await serveThree(revision);
      const meta = (page: number, limit: number, hasnext: boolean) => ({
        ...{ page, limit, count: 3 },
        ...(revision === 'earlier' ? {} : { hasnext })
      });
      assert.deepEqual(await served.listed('?_limit=2'), { ids: ['one', 'two'], meta: meta(1, 2, true) });
      assert.deepEqual(await served.listed('?_page=2&_limit=2'), { ids: ['three'], meta: meta(2, 2, false) });
      assert.deepEqual(await served.listed('?_page=3&_limit=2'), { ids: [], meta: meta(3, 2, false) });
      assert.deepEqual((await served.listed('?enable_paging=true')).meta, meta(1, 10_000, false));
    });

    for (const [query, ids] of [
      ['enabled=true', ['one', 'three']],
      ['enabled=false', ['two']],
      ['for=c', ['one']],
      ['for=a/%2B', ['two']],
      ['_like_id=t', ['two', 'three']],
      ['_like_for=a/', ['one', 'two']],
      ['_match_for=a/%23', ['one', 'two']],
      ['_match_for=%2B/b', ['one']],
      ['_like_description=r', ['one', 'three']],
      ['_like_description=r&enabled=true&_like_id=three', ['three']],
      ['for=nothing', []]
    ] as const)
      it(`filters rules by ${query}, with and without pages`, async () => {
        await using served = await serveThree(revision);
        assert.deepEqual(await served.listed(`?${query}`), { ids, meta: undefined });
        const paged = await served.listed(`?${query}&_limit=10`);
        assert.deepEqual([paged.ids, paged.meta.count], [ids, ids.length]);
      });
  });
