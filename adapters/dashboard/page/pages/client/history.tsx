import { hrefOf } from '../../app/place.ts';
import { getPage } from '../../app/requests.ts';
import { session } from '../../app/session.ts';
import { countText, plainText, timeText } from '../../model/format.ts';
import { CopyAs } from '../../parts/copy.tsx';
import { List } from '../../parts/list.tsx';
import { Name } from '../../parts/name.tsx';
import { T } from '../../texts.ts';

const C = T.client;

/** The last events of a client: connections, subscriptions, refusals, dropped messages. */
export function History({ id }: { readonly id: string }) {
  const startedAt = session.value?.startedAt;
  return (
    <>
      <div class="section-actions">
        {startedAt !== undefined && <span class="aside">{T.why.begin(timeText(startedAt))}</span>}
        <CopyAs
          request={{ path: `/x/clients/${encodeURIComponent(id)}/history` }}
          ctl={['clients', 'history', '--', id]}
        />
      </div>
      <List
        caption={C.history}
        isStacked
        conditions={id}
        load={(page, signal) =>
          getPage('/x/clients/{clientid}/history', { params: { clientid: id }, query: page, signal })
        }
        keyOf={(_, index) => index}
        empty={C.noHistory}
        columns={[
          {
            head: T.topics.time,
            cell: ({ at, since, count }) => (
              <span class="number" title={count > 1 ? C.since(timeText(since, { ms: true })) : undefined}>
                {timeText(at, { ms: true })}
              </span>
            )
          },
          { head: C.times, isNumber: true, cell: ({ count }) => (count > 1 ? countText(count) : '') },
          { head: C.event, isWide: true, cell: ({ about }) => about },
          {
            head: T.topics.topic,
            cell: ({ topic }) =>
              topic !== undefined && (
                <a href={hrefOf('topics', { topic })}>
                  <Name of={topic} />
                </a>
              )
          },
          {
            head: C.details,
            isWide: true,
            cell: ({ detail, from_clientid }) => (
              <>
                {detail !== undefined && <Name of={plainText(detail)} max={400} />}
                {from_clientid !== undefined && from_clientid !== '' && from_clientid !== id && (
                  <span class="aside"> {C.from(from_clientid)}</span>
                )}
              </>
            )
          }
        ]}
      />
    </>
  );
}
