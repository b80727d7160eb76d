import { useState } from 'preact/hooks';
import { hrefOf } from '../../app/place.ts';
import { get, getPage, remove } from '../../app/requests.ts';
import { mayReadPayloads, serverTime } from '../../app/session.ts';
import { countText, durationText, sizeText, timeText } from '../../model/format.ts';
import { Action } from '../../parts/confirm.tsx';
import { CopyAs } from '../../parts/copy.tsx';
import { Badge, Facts } from '../../parts/facts.tsx';
import { List } from '../../parts/list.tsx';
import { useLoaded } from '../../parts/loading.ts';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import { PayloadView } from '../../parts/value.tsx';
import { T } from '../../texts.ts';
import { addressOf, protocolText, type SessionRow } from './row.ts';

const C = T.client;
const NEVER_S = 4_294_967_295;
/** Characters of a topic that a row of the queue shows. */
const SHORT = 120;

interface OfSession {
  readonly session: SessionRow;
}

interface OfClient {
  readonly id: string;
}

/** Facts about the client and its session. */
export function SessionFacts({ session }: OfSession) {
  const { client } = session;
  const limited = (value: number, max: number) => (
    <>
      {countText(value)} <span class="aside">{max === 0 ? C.unlimited : C.ofMax(max)}</span>
    </>
  );
  const time = (text: string | undefined) => (text === undefined ? '–' : timeText(serverTime(text)));
  const user = client.username === 'undefined' ? undefined : client.username;
  return (
    <div class="fact-groups">
      <section>
        <h2>{C.connection}</h2>
        <Facts
          rows={[
            [T.clients.user, user === undefined ? C.noUser : <Name of={user} />],
            [T.clients.address, addressOf(client) ?? T.clients.inProcess],
            [T.clients.protocol, protocolText(client)],
            [C.keepAlive, client.keepalive === 0 ? C.off : durationText(client.keepalive * 1000)],
            [T.clients.zone, <Name key="zone" of={client.zone} />],
            [C.mountPoint, client.mountpoint === '' ? C.noMountPoint : <Name of={client.mountpoint} />],
            [C.connectedAt, time(client.connected_at)],
            [C.disconnectedAt, client.connected ? '–' : time(client.disconnected_at)]
          ]}
        />
      </section>
      <section>
        <h2>{C.session}</h2>
        <Facts
          rows={[
            [C.createdAt, time(client.created_at)],
            [T.clients.cleanStart, client.clean_start ? T.form.yes : T.form.no],
            [
              C.expiry,
              client.expiry_interval === NEVER_S
                ? C.never
                : client.expiry_interval === 0
                  ? C.endsWithConnection
                  : durationText(client.expiry_interval * 1000)
            ],
            [C.subscriptions, limited(client.subscriptions_cnt, client.max_subscriptions)],
            [C.inflight, limited(client.inflight, client.max_inflight), C.inflightAbout],
            [C.awaitingRel, limited(client.awaiting_rel, client.max_awaiting_rel), C.awaitingRelAbout],
            [C.queue, limited(client.mqueue_len, client.max_mqueue)],
            [T.clients.dropped, countText(client.mqueue_dropped), C.droppedAbout],
            [C.buffered, sizeText(client.heap_size), C.bufferedAbout]
          ]}
        />
      </section>
      <Traffic session={session} />
    </div>
  );
}

function Traffic({ session: { client } }: OfSession) {
  return (
    <section>
      <h2>{C.traffic}</h2>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">{C.ofConnection}</th>
            <th scope="col" class="number">
              {C.fromClient}
            </th>
            <th scope="col" class="number">
              {C.toClient}
            </th>
          </tr>
        </thead>
        <tbody>
          {(
            [
              [C.messages, countText(client.recv_msg), countText(client.send_msg)],
              [C.packets, countText(client.recv_pkt), countText(client.send_pkt)],
              [C.bytes, sizeText(client.recv_oct), sizeText(client.send_oct)]
            ] as const
          ).map(([name, from, to]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="number">{from}</td>
              <td class="number">{to}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const RETAIN_HANDLING = [C.retainAlways, C.retainNew, C.retainNever];

/** The subscriptions of the session, with their options. */
export function Subscriptions({ session: { subscriptions } }: OfSession) {
  return (
    <Table
      caption={C.subscriptions}
      rows={subscriptions}
      keyOf={({ topic }) => topic}
      empty={C.noSubscriptions}
      columns={[
        { head: T.topics.filter, isWide: true, cell: ({ topic }) => <Name of={topic} /> },
        { head: T.topics.qos, isNumber: true, cell: ({ qos }) => qos },
        { head: C.noLocal, cell: ({ no_local }) => (no_local ? T.form.yes : '') },
        {
          head: C.retainAsPublished,
          isMinor: true,
          cell: ({ retain_as_published }) => (retain_as_published ? T.form.yes : '')
        },
        {
          head: C.retainHandling,
          isMinor: true,
          cell: ({ retain_handling }) => RETAIN_HANDLING[retain_handling] ?? retain_handling
        },
        { head: C.subscriptionId, isNumber: true, isMinor: true, cell: ({ subscription_id }) => subscription_id ?? '' }
      ]}
    />
  );
}

/** Messages whose acknowledgement is not complete. */
export function Inflight({ session: { inflight, awaiting_rel } }: OfSession) {
  return (
    <>
      <Table
        caption={C.inflight}
        rows={inflight}
        keyOf={({ packet_id }) => packet_id}
        empty={C.noInflight}
        columns={[
          { head: C.packetId, isNumber: true, cell: ({ packet_id }) => packet_id },
          { head: C.awaits, cell: ({ awaits }) => awaits.toUpperCase() },
          { head: T.topics.qos, isNumber: true, cell: ({ qos }) => qos },
          { head: C.sent, cell: ({ sent }) => (sent ? T.form.yes : T.form.no) },
          {
            head: T.topics.topic,
            isWide: true,
            cell: ({ topic }) => (topic === undefined ? <span class="aside">{C.notKept}</span> : <Name of={topic} />)
          },
          {
            head: T.topics.size,
            isNumber: true,
            cell: ({ payload_size }) => (payload_size === undefined ? '' : sizeText(payload_size))
          }
        ]}
      />
      {inflight.some(({ topic }) => topic === undefined) && <p class="aside">{C.notKeptAbout}</p>}
      {awaiting_rel.length > 0 && (
        <p>
          {C.awaitingRelOf} <span class="mono">{awaiting_rel.join(', ')}</span>
        </p>
      )}
    </>
  );
}

/** The queued messages, with their payloads on request. */
export function Queue({ id, onCleared }: OfClient & { readonly onCleared: () => void }) {
  const [opened, setOpened] = useState<string>();
  const [version, setVersion] = useState(0);
  return (
    <>
      <div class="section-actions">
        <CopyAs
          request={{ path: `/x/sessions/${encodeURIComponent(id)}/queue` }}
          ctl={['sessions', 'queue', '--', id]}
        />
        <Action
          label={C.clearQueue}
          of={id}
          text={C.clearQueueText}
          isDangerous
          kind="small"
          done={C.queueCleared}
          run={async () => {
            await remove('/x/sessions/{clientid}/queue', { params: { clientid: id } });
            setVersion((before) => before + 1);
            onCleared();
          }}
        >
          <CopyAs
            request={{ method: 'DELETE', path: `/x/sessions/${encodeURIComponent(id)}/queue` }}
            ctl={['sessions', 'clear', '--', id]}
          />
        </Action>
      </div>
      <List
        caption={C.queue}
        isStacked
        conditions={`${id} ${version} ${mayReadPayloads.value}`}
        load={(page, signal) =>
          getPage('/x/sessions/{clientid}/queue', {
            params: { clientid: id },
            query: { ...page, payload: mayReadPayloads.value },
            signal
          })
        }
        keyOf={(_, index) => index}
        empty={C.noQueue}
        columns={[
          {
            head: T.topics.topic,
            isWide: true,
            cell: ({ topic, at, payload }) =>
              payload === undefined ? (
                <Name of={topic} />
              ) : (
                <button
                  type="button"
                  class="row-button"
                  aria-expanded={opened === `${at} ${topic}`}
                  onClick={() => setOpened(opened === `${at} ${topic}` ? undefined : `${at} ${topic}`)}
                >
                  <Name of={topic} max={SHORT} isPlain />
                </button>
              )
          },
          { head: T.topics.qos, isNumber: true, cell: ({ qos }) => qos },
          { head: T.topics.retain, isMinor: true, cell: ({ retain }) => (retain ? T.form.yes : '') },
          { head: C.queuedAt, cell: ({ at }) => timeText(at, { ms: true }) },
          {
            head: C.expiresAt,
            isMinor: true,
            cell: ({ expires_at: at }) => (at === undefined ? C.never : timeText(at))
          },
          {
            head: T.topics.publisher,
            isMinor: true,
            cell: ({ from_clientid }) => <Publisher id={from_clientid} />
          },
          { head: T.topics.size, isNumber: true, cell: ({ payload_size }) => sizeText(payload_size) }
        ]}
        below={(row) => opened === `${row.at} ${row.topic}` && <Opened row={row} />}
      />
    </>
  );
}

function Publisher({ id }: { readonly id: string | undefined }) {
  if (id === undefined) return <>{T.topics.byBroker}</>;
  return (
    <a href={hrefOf('client', { id })}>
      <Name of={id} max={40} />
    </a>
  );
}

function Opened({ row }: { readonly row: Parameters<typeof PayloadView>[0]['of'] & { readonly topic: string } }) {
  return (
    <>
      {row.topic.length > SHORT && (
        <p>
          <Name of={row.topic} max={SHORT} />
        </p>
      )}
      <PayloadView of={row} />
    </>
  );
}

/** The cached decisions on rights of this client. */
export function RightsCache({ id }: OfClient) {
  const { value, error, reload } = useLoaded(id, (signal) =>
    get('/clients/{clientid}/acl_cache', { params: { clientid: id }, signal })
  );
  return (
    <>
      <div class="section-actions">
        <CopyAs request={{ path: `/clients/${encodeURIComponent(id)}/acl_cache` }} />
        <Action
          label={C.forgetRights}
          of={id}
          text={C.forgetRightsText}
          kind="small"
          done={C.rightsForgotten}
          run={() => remove('/clients/{clientid}/acl_cache', { params: { clientid: id } })}
          onDone={reload}
        />
      </div>
      <Table
        caption={C.rights}
        rows={value}
        error={error}
        onRetry={reload}
        keyOf={({ access, topic }) => `${access} ${topic}`}
        empty={C.noRights}
        columns={[
          { head: C.action, cell: ({ access }) => access },
          { head: T.topics.topic, isWide: true, cell: ({ topic }) => <Name of={topic} /> },
          {
            head: C.decision,
            cell: ({ result }) => <Badge kind={result === 'allow' ? 'good' : 'bad'}>{result}</Badge>
          },
          { head: C.decidedAt, cell: ({ updated_time }) => timeText(updated_time) }
        ]}
      />
    </>
  );
}
