import { choice, hrefOf } from '../app/place.ts';
import { get, post, RequestError } from '../app/requests.ts';
import { serverTime } from '../app/session.ts';
import { agoText } from '../model/format.ts';
import { Action } from '../parts/confirm.tsx';
import { CopyAs } from '../parts/copy.tsx';
import { Badge, Head, Tabs } from '../parts/facts.tsx';
import { useLoaded } from '../parts/loading.ts';
import { Name } from '../parts/name.tsx';
import { Problem } from '../parts/problem.tsx';
import { T } from '../texts.ts';
import { LiftBan } from './access/lift.tsx';
import { BanClient, TraceClient } from './client/actions.tsx';
import { Banned, useBan, useChanged } from './client/banned.tsx';
import { StateChart } from './client/chart.tsx';
import { History } from './client/history.tsx';
import type { SessionRow } from './client/row.ts';
import { Inflight, Queue, RightsCache, SessionFacts, Subscriptions } from './client/tabs.tsx';

const C = T.client;

/** A client: its session, and actions on it. */
export function Page() {
  const id = choice('id');
  const { value, error, isLoading, reload } = useLoaded<SessionRow>(id, (signal) =>
    get('/x/sessions/{clientid}', { params: { clientid: id }, signal })
  );
  const isGone = error instanceof RequestError && error.status === 404;
  const ban = useBan(id, value);
  const changed = useChanged(() => {
    reload();
    ban.reload();
  });
  return (
    <>
      <p class="crumbs">
        <a href={hrefOf('clients')}>{T.views.clients}</a>
      </p>
      <Head
        title={
          <>
            <Name of={id} /> {value && !isGone && <State session={value} />} <Banned ban={ban.value} />
          </>
        }
      >
        <button type="button" disabled={isLoading} onClick={reload}>
          {T.table.reload}
        </button>
        {value && !isGone && (
          <CopyAs request={{ path: `/x/sessions/${encodeURIComponent(id)}` }} ctl={['sessions', 'show', '--', id]} />
        )}
        {value && !isGone && <Actions id={id} session={value} ban={ban} onDone={changed} />}
        {isGone && <BanOrLift id={id} client={undefined} ban={ban} onDone={changed} />}
      </Head>
      {isGone && <Gone id={id} isBanned={!!ban.value} />}
      {!isGone && value !== undefined && <Content id={id} session={value} onDone={reload} />}
      {!isGone && error !== undefined && <Problem error={error} onRetry={reload} />}
      {value === undefined && error === undefined && <p class="loading">{T.shell.loading}</p>}
    </>
  );
}

/** A client without a session: the records about it are still there. */
function Gone({ id, isBanned }: { readonly id: string; readonly isBanned: boolean }) {
  const tab = choice('tab') === 'chart' ? 'chart' : 'history';
  return (
    <>
      <div class="empty">
        <p>{isBanned ? C.goneBanned : C.gone}</p>
        <a class="button" href={hrefOf('clients', { _like_clientid: id.slice(0, 64) })}>
          {C.findSimilar}
        </a>
      </div>
      <Tabs
        label={C.parts}
        shown={tab}
        tabs={[
          ['history', C.history],
          ['chart', C.chart]
        ]}
      />
      {tab === 'history' ? <History id={id} /> : <StateChart id={id} />}
    </>
  );
}

function State({ session: { client } }: { readonly session: SessionRow }) {
  const since = serverTime(client.connected ? client.connected_at : client.disconnected_at);
  return (
    <Badge kind={client.connected ? 'good' : 'quiet'}>
      {client.connected ? T.clients.connected : T.clients.disconnected}
      {since !== undefined && ` ${agoText(since, Date.now(), T.time)}`}
    </Badge>
  );
}

type BanState = ReturnType<typeof useBan>;

/** The properties of what is shown of a client with a session. */
interface ClientProps {
  readonly id: string;
  readonly session: SessionRow;
  readonly onDone: () => void;
}

/** Bans a client, or lifts the ban that it has. Nothing can be done before it is known which. */
function BanOrLift({ id, client, ban, onDone }: Parameters<typeof BanClient>[0] & { readonly ban: BanState }) {
  const { value, isLoading } = ban;
  if (value) return <LiftBan as={value.as} who={value.who} label={T.access.liftTitle} kind="" onDone={onDone} />;
  if (value === undefined && isLoading)
    return (
      <button type="button" class="danger" disabled>
        {C.ban}
      </button>
    );
  return <BanClient id={id} client={client} onDone={onDone} />;
}

function Actions({ id, session, ban, onDone }: ClientProps & { readonly ban: BanState }) {
  const path = `/clients/${encodeURIComponent(id)}`;
  return (
    <>
      <a class="button" href={hrefOf('why', { client: id })}>
        {C.why}
      </a>
      <TraceClient id={id} />
      <BanOrLift id={id} client={session.client} ban={ban} onDone={onDone} />
      <Action
        name="kick"
        label={C.kick}
        title={C.kickTitle}
        of={id}
        text={C.kickText}
        isDangerous
        done={C.kicked}
        run={async () => {
          await post('/x/clients/kick', { body: { clientids: [id] } });
          onDone();
        }}
      >
        <CopyAs request={{ method: 'DELETE', path }} ctl={['clients', 'kick', '--', id]} />
      </Action>
    </>
  );
}

function Content({ id, session, onDone }: ClientProps) {
  const { subscriptions, inflight, awaiting_rel, queued } = session;
  const tab = choice('tab') || 'session';
  const counted = (text: string, count: number) => (
    <>
      {text} <span class="count">{count}</span>
    </>
  );
  return (
    <>
      <Tabs
        label={C.parts}
        shown={tab}
        tabs={[
          ['session', C.session],
          ['subscriptions', counted(C.subscriptions, subscriptions.length)],
          ['inflight', counted(C.inflight, inflight.length + awaiting_rel.length)],
          ['queue', counted(C.queue, queued)],
          ['history', C.history],
          ['chart', C.chart],
          ['rights', C.rights]
        ]}
      />
      {tab === 'session' && <SessionFacts session={session} />}
      {tab === 'subscriptions' && <Subscriptions session={session} />}
      {tab === 'inflight' && <Inflight session={session} />}
      {tab === 'queue' && <Queue id={id} onCleared={onDone} />}
      {tab === 'history' && <History id={id} />}
      {tab === 'chart' && <StateChart id={id} />}
      {tab === 'rights' && <RightsCache id={id} />}
    </>
  );
}
